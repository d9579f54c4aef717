// Package mqtt is the wire between cabinets and settlement: a client that consumes and publishes, and an embedded broker
// for machines that have none.
//
// The package does not know what a message means. Topics, who may use them and what becomes of a payload come in as
// functions.
package mqtt
