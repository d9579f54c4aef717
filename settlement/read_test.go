package settlement

import (
	"log/slog"
	"testing"

	"doortab/cabinet"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/deadletter"
)

func TestAMessageThatPanicsIsKept(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	s := New(Config{DB: db, Currency: "CNY", Logger: slog.New(slog.DiscardHandler)})
	it := &item{Delivery: Delivery{DeviceID: 1001, Topic: "v1/cabinets/1001/door-closed", Payload: []byte("{}"), ReceivedAt: database.Now()}}
	it.attribute(s.read(func() (*cabinet.Event, error) { panic("planted") }))
	s.run(t.Context(), []*item{it})
	if it.answer.Err != nil || it.answer.Receipt != nil {
		t.Errorf("answer %+v, want none", it.answer)
	}
	letters, err := deadletter.List(t.Context(), db, 0, 10)
	if err != nil || len(letters) != 1 || letters[0].Reason != LetterInternal || string(letters[0].Payload) != "{}" {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
}
