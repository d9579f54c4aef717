// Package simulator is a fleet of cabinets with shoppers, staff and bad luck. It sees Doortab only from outside: it
// speaks MQTT as the cabinets do and REST as the operator's systems do.
//
// It keeps books of its own: what was physically taken and put in, every event that a door reported, and what the
// receipts said. At the end it reads Doortab's books through REST and names every difference: an event is lost, doubled,
// or a stock row has drifted. Its cabinets are its own: whoever restocks one of them by hand while it runs makes a drift.
package simulator
