package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"doortab/cabinet"
	"doortab/database"
	"doortab/intake"
	"doortab/migrations"
	"doortab/settlement"
)

const currency = "CNY"

// product is Doortab as `doortab serve` wires it with its defaults, with a feeder in the place of the broker.
type product struct {
	dsn        string
	before     past
	window     int // deliveries that are unacknowledged at most
	db         *database.DB
	remembered *settlement.Remembered // nil: without Redis
	settlement *settlement.Service
	intake     *intake.Intake
	repeats    atomic.Int64 // receipts that say so
}

// newProduct makes the schema of a Doortab with a filled catalogue, cabinets and their past.
func (l *Lab) newProduct(ctx context.Context, before past, withRedis bool) (*product, error) {
	dsn, err := l.schema(ctx, "doortab")
	if err != nil {
		return nil, err
	}
	p := &product{dsn: dsn, before: before, window: l.window}
	if p.db, err = database.Open(database.Config{DSN: dsn, Logger: l.log}); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, l, before, withRedis); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *product) prepare(ctx context.Context, l *Lab, before past, withRedis bool) error {
	if _, err := migrations.Up(ctx, p.db); err != nil {
		return err
	}
	if err := fillCatalogue(ctx, p.db); err != nil {
		return err
	}
	if err := before.fill(ctx, p.db, l.say); err != nil {
		return err
	}
	if withRedis {
		installation, err := settlement.Installation(ctx, p.db)
		if err != nil {
			return err
		}
		if p.remembered, err = settlement.NewRemembered(l.servers.Redis.URL(), installation, l.log); err != nil {
			return err
		}
		p.remembered.Check(ctx)
	}
	p.serve(l)
	return nil
}

// another is a second process on the same database, without Redis.
func (p *product) another(l *Lab) (second *product, err error) {
	second = &product{dsn: p.dsn, window: p.window}
	if second.db, err = database.Open(database.Config{DSN: p.dsn, Logger: l.log}); err != nil {
		return nil, err
	}
	second.serve(l)
	return second, nil
}

func (p *product) serve(l *Lab) {
	p.settlement = settlement.New(settlement.Config{DB: p.db, Remembered: p.remembered, Currency: currency, Logger: l.log})
	p.intake = intake.New(intake.Config{Settlement: p.settlement, Send: p.send, Logger: l.log})
}

// send is where the broker would take a receipt.
func (p *product) send(_ string, receipt []byte) {
	if bytes.Contains(receipt, []byte(`"duplicate":true`)) {
		p.repeats.Add(1)
	}
}

func (p *product) close() error {
	var errs []error
	if p.remembered != nil {
		errs = append(errs, p.remembered.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}

// end checks that every event that was acknowledged has its order, and removes the database.
func (p *product) end(ctx context.Context, l *Lab, acknowledged int64) error {
	var settled int64
	row := p.db.SQL().QueryRowContext(ctx, "SELECT COUNT(*) FROM settlements WHERE outcome = ?", cabinet.Settled)
	if err := row.Scan(&settled); err != nil {
		return fmt.Errorf("count the settlements: %w", err)
	}
	if settled -= p.before.events(); settled != acknowledged {
		return fmt.Errorf("doortab acknowledged %d events and settled %d", acknowledged, settled)
	}
	return errors.Join(p.close(), l.drop(ctx, p.dsn))
}

// delivery is an event as the broker brings it.
func delivery(e *cabinet.Event) (settlement.Delivery, error) {
	payload, err := e.MarshalJSON()
	if err != nil {
		return settlement.Delivery{}, fmt.Errorf("encode event %d/%s: %w", e.DeviceID, e.CloseEventID, err)
	}
	return settlement.Delivery{
		DeviceID: e.DeviceID, Topic: cabinet.DoorClosedTopic(e.DeviceID), Payload: payload, ReceivedAt: time.Now(),
	}, nil
}
