// Package simulator is a fleet of cabinets with shoppers, staff and bad luck. It sees Doortab only from outside: it
// speaks MQTT as the cabinets do and REST as the operator's systems do.
//
// It keeps books of its own: every event that a door reported, what the receipts said, and what staff and an operator did
// by REST. At the end it reads Doortab's books through REST and names every difference: an event is lost, doubled, or a
// stock row has drifted. Apart from that it knows what was physically taken and put in, and says how far outcomes and
// books are from it, since sensors and people make mistakes. Its cabinets are its own: whoever restocks one of them by
// hand while it runs makes a drift.
package simulator
