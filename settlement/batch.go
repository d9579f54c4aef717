package settlement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"doortab/cabinet"
	"doortab/deadletter"
	"doortab/door"
)

// batch is all that one transaction keeps for a group.
type batch struct {
	currency string
	now      time.Time // the one time of the transaction

	settlements []settled
	orders      []ordered
	lines       []orderedLine
	reviews     [][]any
	conflicts   [][]any
	letters     []deadletter.Letter
	sequences   [][]any
	doors       []door.Closing
	jumps       []seqJump
	gaps        []gap
}

// sort answers what needs no settlement of its own, and returns the fresh events.
func (b *batch) sort(items []*item, k *known) *fresh {
	f := &fresh{leader: map[key]*item{}}
	for _, it := range items {
		it.answer, it.repeat, it.planned = Answer{}, false, nil
		if it.event == nil {
			b.letter(it)
			continue
		}
		it.letter = nil
		if stored, ok := k.outcomes[it.key]; ok {
			b.answerKnown(it, stored, k)
			continue
		}
		sequence, registered := k.sequences[it.key.deviceID]
		if !registered {
			it.letter = unknownCabinet(it)
			b.letter(it)
			continue
		}
		it.at = it.position(sequence)
		it.behind = it.at != nil && sequence.last != nil && it.at.Seq < *sequence.last
		f.add(it)
	}
	return f
}

// answerKnown answers with the stored receipt (R2), or with a conflict (R3).
func (b *batch) answerKnown(it *item, stored outcome, k *known) {
	if !bytes.Equal(stored.Digest, it.digest[:]) {
		b.conflict(it, k)
		return
	}
	receipt := new(cabinet.Receipt)
	if err := json.Unmarshal(stored.Receipt, receipt); err != nil {
		it.answer = Answer{Err: fmt.Errorf("stored receipt of %s: %w", it.name(), err)}
		return
	}
	it.repeat = !slices.ContainsFunc(it.sent, func(sent []byte) bool { return bytes.Equal(sent, stored.Receipt) })
	receipt.Duplicate = it.repeat
	it.answer = Answer{Receipt: receipt}
}

// conflict keeps each distinct other content once, with one review.
func (b *batch) conflict(it *item, k *known) {
	ck := conflictKey{it.key, it.digest}
	at, seen := k.conflicts[ck]
	it.repeat = seen
	if !seen {
		at = b.now
		k.conflicts[ck] = at
		b.conflicts = append(b.conflicts, []any{it.key.deviceID, it.key.closeEventID, it.digest[:], it.Payload, at})
		b.review(it, nil, &verdict{reasons: []cabinet.Reason{cabinet.ReasonConflict}}, it.digest[:])
	}
	it.answer = Answer{Receipt: b.plainReceipt(it, cabinet.Conflict, at, cabinet.ReasonConflict)}
}

// plainReceipt is a receipt without an order.
func (b *batch) plainReceipt(it *item, outcome cabinet.Outcome, at time.Time, reasons ...cabinet.Reason) *cabinet.Receipt {
	if reasons == nil {
		reasons = []cabinet.Reason{}
	}
	return &cabinet.Receipt{
		CloseEventID: it.key.closeEventID, DeviceID: it.DeviceID, Outcome: outcome,
		Currency: b.currency, Lines: []cabinet.Line{}, Reasons: reasons, SettledAt: at,
	}
}

// fresh is the part of a group that has no outcome yet.
type fresh struct {
	first  []*item // one for each event, in order of arrival
	leader map[key]*item
	follow []*item // further copies
}

func (f *fresh) add(it *item) {
	if f.leader[it.key] != nil {
		f.follow = append(f.follow, it)
		return
	}
	f.leader[it.key] = it
	f.first = append(f.first, it)
}

// stored is the outcome that the group is about to keep, for the copies behind the first.
func (f *fresh) stored(k key) outcome {
	leader := f.leader[k]
	return outcome{k.deviceID, k.closeEventID, leader.digest[:], leader.planned}
}
