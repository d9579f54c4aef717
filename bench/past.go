package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"doortab/bench/usual"
	"doortab/database"
)

// past is the life of a fleet before the benchmark: each cabinet had so many events, all cabinets in turn, spread over a year.
// The event number k of a cabinet, from 0, took one unit of three products that follow each other, the next event of the next
// three, so that what any row has to say follows from its numbers alone.
type past struct {
	cabinets  int
	perEach   int // events of each cabinet
	beganAt   time.Time
	intervalS int64 // seconds between two events
}

func newPast(cabinets, perEach int) past {
	const year = 365 * 24 * time.Hour
	events := max(1, cabinets*perEach)
	return past{cabinets, perEach, time.Now().Add(-year).UTC().Truncate(time.Second), max(1, int64(year/time.Second)/int64(events))}
}

func (p past) events() int64 { return int64(p.cabinets) * int64(p.perEach) }

// portion is what one statement fills: the events from and up to, but without, another of the cabinets first to last.
type portion struct{ first, last, from, to int }

const (
	// rowsAtOnce is about how many rows one statement fills.
	rowsAtOnce = 100_000
	// rounds are the times that the filling goes through all cabinets, each time with a part of their events. Filled at once, every
	// page would be full to the brim, and any later row would split it; filled in turns, they have room, as pages have in life.
	rounds = 4
	// restocked is the restock that each cabinet was filled by.
	restocked = "00000000-0000-7000-8000-000000000000"
)

// names stand in the statements below for what makes up a row: d.seq is the cabinet, k.seq the number of its event, x.seq the
// number of a line of that event, p.seq a product.
func (p past) names(some portion) *strings.Replacer {
	number := fmt.Sprintf("(k.seq * %d + d.seq - 1)", p.cabinets)
	ms := fmt.Sprintf("(%d + %d * %s)", p.beganAt.UnixMilli(), p.intervalS*1000, number)
	at := fmt.Sprintf("TIMESTAMPADD(SECOND, %d * %s, '%s')", p.intervalS, number, p.beganAt.Format(time.DateTime))
	line := "(k.seq * 3 + x.seq)"
	lastSeq := "NULL"
	if p.perEach > 0 {
		lastSeq = fmt.Sprint(p.perEach)
	}
	return strings.NewReplacer(
		"{cabinets}", fmt.Sprintf("seq_%d_to_%d d", some.first, some.last),
		"{events}", fmt.Sprintf("seq_%d_to_%d k", some.from, some.to-1),
		"{lines}", fmt.Sprintf("seq_0_to_%d x", perEvent-1),
		"{products}", fmt.Sprintf("seq_1_to_%d p", products),
		"{at}", at,
		"{event}", fmt.Sprintf("LOWER(CONCAT(LPAD(HEX(%s DIV 65536), 8, '0'), '-', LPAD(HEX(%[1]s MOD 65536), 4, '0'), "+
			"'-7000-8000-', LPAD(HEX(d.seq), 12, '0')))", ms),
		"{order}", fmt.Sprintf("((%s << 22) | (%s & 4194303))", ms, number),
		"{last seq}", lastSeq,
		"{user}", fmt.Sprintf("(1 + d.seq MOD %d)", users),
		"{product}", fmt.Sprintf("(1 + %s MOD %d)", line, products),
		"{version}", fmt.Sprintf("(2 + %s DIV %d)", line, products),
		"{sold}", fmt.Sprintf("((%d - p.seq) DIV %d)", p.perEach*perEvent+products, products), // events that took the product
		"{stock}", fmt.Sprint(startStock),
		"{price}", fmt.Sprint(usual.PriceMinor),
		"{restock}", "'"+restocked+"'",
	)
}

// fillCabinets are the statements for the cabinets themselves: with a lane, stock and the movement behind it for each product.
var fillCabinets = []string{
	`INSERT INTO cabinets (device_id, name, site, created_at, updated_at)
		SELECT d.seq, CONCAT('Cabinet ', d.seq), CONCAT('Site ', d.seq DIV 20), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM {cabinets}`,
	`INSERT INTO lanes (device_id, lane, product_id, capacity, par_level)
		SELECT d.seq, p.seq, p.seq, 12, 4 FROM {cabinets} JOIN {products} ORDER BY d.seq, p.seq`,
	`INSERT INTO restocks (device_id, restock_id, note, actor, created_at)
		SELECT d.seq, {restock}, 'filled', 'bench', UTC_TIMESTAMP(3) FROM {cabinets}`,
	`INSERT INTO device_stock (device_id, product_id, stock, version, updated_at)
		SELECT d.seq, p.seq, {stock} - {sold}, 1 + {sold}, UTC_TIMESTAMP(3) FROM {cabinets} JOIN {products} ORDER BY d.seq, p.seq`,
	`INSERT INTO stock_movements (device_id, product_id, version, kind, quantity, delta, balance, ref, created_at)
		SELECT d.seq, p.seq, 1, 'restock', {stock}, {stock}, {stock}, {restock}, UTC_TIMESTAMP(3) - INTERVAL 1 YEAR
		FROM {cabinets} JOIN {products} ORDER BY d.seq, p.seq`,
	`INSERT INTO cabinet_sequences (device_id, epoch, last_seq) SELECT d.seq, 0, {last seq} FROM {cabinets}`,
}

// fillEvents are the statements for what the cabinets sold. The settlements themselves come from [past.settlements]: their digests
// can't be had from SQL.
var fillEvents = []string{
	`INSERT INTO orders (order_id, device_id, close_event_id, user_id, status, currency, total_minor, created_at)
		SELECT {order}, d.seq, {event}, {user}, 'open', 'CNY', 3 * {price}, {at} FROM {cabinets} JOIN {events} ORDER BY k.seq, d.seq`,
	`INSERT INTO order_lines (device_id, order_id, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence)
		SELECT d.seq, {order}, x.seq + 1, 'settlement', {product}, 1, {price}, {price},
			'{"source":"items","rule":"cabinet_count","quantity":1,"confidence":1}'
		FROM {cabinets} JOIN {events} JOIN {lines} ORDER BY d.seq, k.seq, x.seq`,
	`INSERT INTO stock_movements (device_id, product_id, version, kind, quantity, delta, balance, ref, seq, seq_epoch, created_at)
		SELECT d.seq, {product}, {version}, 'sale', -1, -1, {stock} + 1 - {version}, {event}, k.seq + 1, 0, {at}
		FROM {cabinets} JOIN {events} JOIN {lines} ORDER BY d.seq, {product}, {version}`,
}

// fill writes the cabinets and their past.
func (p past) fill(ctx context.Context, db *database.DB, said func(format string, args ...any)) error {
	tell := news(said)
	err := p.each(portion{to: p.perEach}, products, func(some portion) error {
		tell("filled %d of %d cabinets", some.first-1, p.cabinets)
		return p.execute(ctx, db, some, fillCabinets)
	})
	if err != nil {
		return err
	}
	atOnce := (p.perEach + rounds - 1) / rounds
	for from := 0; from < p.perEach; from += atOnce {
		round := portion{from: from, to: min(from+atOnce, p.perEach)}
		err := p.each(round, atOnce*perEvent, func(some portion) error {
			tell("filled %d of %d past events", from*p.cabinets+(some.first-1)*(some.to-from), p.events())
			if err := p.execute(ctx, db, some, fillEvents); err != nil {
				return err
			}
			return p.settlements(ctx, db, some)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// news passes on what is said, but not more often than a reader wants to hear it.
func news(said func(format string, args ...any)) func(format string, args ...any) {
	const interval = 5 * time.Second
	last := time.Now()
	return func(format string, args ...any) {
		if time.Since(last) >= interval {
			last = time.Now()
			said(format, args...)
		}
	}
}

// each takes all cabinets, so many at once that a statement with so many rows of each is of a fair size.
func (p past) each(of portion, rowsOfEach int, fill func(portion) error) error {
	atOnce := max(1, rowsAtOnce/rowsOfEach)
	for of.first = 1; of.first <= p.cabinets; of.first += atOnce {
		of.last = min(of.first+atOnce-1, p.cabinets)
		if err := fill(of); err != nil {
			return fmt.Errorf("fill the cabinets %d to %d: %w", of.first, of.last, err)
		}
	}
	return nil
}

func (p past) execute(ctx context.Context, db *database.DB, some portion, statements []string) error {
	names := p.names(some)
	for _, statement := range statements {
		if _, err := db.SQL().ExecContext(ctx, names.Replace(statement)); err != nil {
			return err
		}
	}
	return nil
}
