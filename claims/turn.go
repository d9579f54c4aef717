package claims

import "context"

// turn is held by one at a time.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn, or returns the error of a ctx that ended first. Whoever gets it leaves it.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) leave() { <-t }
