package cabinet

import (
	"strconv"
	"strings"
)

// What the last level of a cabinet's topic can be, section 4 of the design.
const (
	LeafDoorClosed = "door-closed" // up: the door-close event
	LeafDoor       = "door"        // up: what became of an unlock
	LeafStatus     = "status"      // up, retained, also the last will
	LeafTelemetry  = "telemetry"   // up, QoS 0
	LeafReceipts   = "receipts"    // down: the receipt
	LeafUnlock     = "unlock"      // down, QoS 0
)

const topicRoot = "v1/cabinets/"

// Filters that Doortab's workers subscribe to.
const (
	DoorClosedFilter = topicRoot + "+/" + LeafDoorClosed
	DoorFilter       = topicRoot + "+/" + LeafDoor
	StatusFilter     = topicRoot + "+/" + LeafStatus
	TelemetryFilter  = topicRoot + "+/" + LeafTelemetry
)

// DoorClosedTopic is where the cabinet reports a closed door.
func DoorClosedTopic(deviceID int64) string { return topic(deviceID, LeafDoorClosed) }

// DoorTopic is where the cabinet answers an unlock.
func DoorTopic(deviceID int64) string { return topic(deviceID, LeafDoor) }

// StatusTopic is where the cabinet keeps its retained status.
func StatusTopic(deviceID int64) string { return topic(deviceID, LeafStatus) }

// TelemetryTopic is where the cabinet reports its temperature.
func TelemetryTopic(deviceID int64) string { return topic(deviceID, LeafTelemetry) }

// ReceiptsTopic is where the cabinet hears outcomes.
func ReceiptsTopic(deviceID int64) string { return topic(deviceID, LeafReceipts) }

// UnlockTopic is where the cabinet hears that it may open.
func UnlockTopic(deviceID int64) string { return topic(deviceID, LeafUnlock) }

func topic(deviceID int64, leaf string) string {
	return topicRoot + strconv.FormatInt(deviceID, 10) + "/" + leaf
}

// ParseTopic takes one of a cabinet's six topics apart. The number must be written as Doortab writes it, from 1 to
// MaxID: "01001" and "+1001" would be second names for one cabinet.
func ParseTopic(topic string) (deviceID int64, leaf string, ok bool) {
	rest, found := strings.CutPrefix(topic, topicRoot)
	if !found {
		return 0, "", false
	}
	number, leaf, found := strings.Cut(rest, "/")
	if !found || !mayPublishLeaf(leaf) && !maySubscribeLeaf(leaf) {
		return 0, "", false
	}
	deviceID, ok = ParseDeviceID(number)
	if !ok {
		return 0, "", false
	}
	return deviceID, leaf, true
}

// ParseDeviceID reads a device id in the one way that Doortab writes it, as in a topic or an MQTT user name: decimal,
// 1 to MaxID, no sign, no leading zero.
func ParseDeviceID(s string) (deviceID int64, ok bool) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 1 || id > MaxID || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	return id, true
}

// MayPublish reports whether the cabinet may publish on the topic: its own four topics up.
func MayPublish(deviceID int64, topic string) bool {
	id, leaf, ok := ParseTopic(topic)
	return ok && id == deviceID && mayPublishLeaf(leaf)
}

// MaySubscribe reports whether the cabinet may subscribe to the filter: its own two topics down, without wildcards and
// without $share.
func MaySubscribe(deviceID int64, filter string) bool {
	id, leaf, ok := ParseTopic(filter)
	return ok && id == deviceID && maySubscribeLeaf(leaf)
}

// WorkerMayPublish reports whether Doortab itself publishes on the topic: what goes down to any cabinet.
func WorkerMayPublish(topic string) bool {
	_, leaf, ok := ParseTopic(topic)
	return ok && maySubscribeLeaf(leaf)
}

// WorkerMaySubscribe reports whether Doortab itself subscribes to the filter: what comes up from all cabinets, shared or
// not.
func WorkerMaySubscribe(filter string) bool {
	if rest, shared := strings.CutPrefix(filter, "$share/"); shared {
		_, filter, _ = strings.Cut(rest, "/")
	}
	switch filter {
	case DoorClosedFilter, DoorFilter, StatusFilter, TelemetryFilter:
		return true
	default:
		return false
	}
}

func mayPublishLeaf(leaf string) bool {
	switch leaf {
	case LeafDoorClosed, LeafDoor, LeafStatus, LeafTelemetry:
		return true
	default:
		return false
	}
}

func maySubscribeLeaf(leaf string) bool {
	return leaf == LeafReceipts || leaf == LeafUnlock
}
