// Package mqtt is the wire between cabinets and settlement: a client that consumes and publishes, and an embedded broker
// for machines that have none.
//
// The package does not know what a message means. Topics, who may use them and what becomes of a payload come in as
// functions.
//
// # Acknowledging
//
// A Client acknowledges a message only when its holder says so, in order of arrival, stepping past deferred ones. Sessions
// are clean: what a worker leaves unacknowledged is gone with its connection, and comes again from the cabinet's outbox
// (R2). A handler without room refuses a message; the client keeps it, within Config.Window, and offers it again. A full window
// is not read, which is the back-pressure where the broker's own window is wider: BrokerConfig.Window on the embedded broker,
// beyond which that does not read the connection that sends. Mosquitto 2.0.11 keeps to its max_inflight_messages only until the
// first acknowledgement: then it sends whatever has queued up. Measured with 6,000 messages, 4,000 acknowledgements a second and
// a max_inflight_messages of 1000: 5,080 unacknowledged.
//
// # What the embedded broker loses
//
// Nothing without ending a connection, on which a cabinet sends again what was not answered, and without counting it in
// BrokerStats. A full window pauses publishers. What goes to a cabinet waits in memory for the network, and nobody waits for
// it; a cabinet that does not read or acknowledge is ended. While it is away, its session keeps 256 messages, if it has one.
//
// # Statuses of a whole fleet
//
// Kept messages of 100,000 cabinets arrive with each subscription. Give them a Client of their own, so that they can't
// delay door-closed events, with QoS 0 and a handler that only notes the last one of each device. Measured on Mosquitto
// 2.0.11 with 100,000 of them: with QoS 1 its stock max_queued_messages of 1000 lets 1,020 through and drops the rest
// without a word; with QoS 0 95 to 100 % arrive within a second, fewer the slower they are read; with max_queued_messages 0
// all arrive with either. The embedded broker delivers all of them with QoS 0, and 50,000 with QoS 1. A status that was
// missed is put right by the cabinet's next.
package mqtt
