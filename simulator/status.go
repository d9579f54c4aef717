package simulator

import (
	"context"
	"fmt"
	"time"
)

// report writes one status line a second.
func (s *Simulator) report(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	began, before := time.Now(), counts{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.books.sofar()
		waiting := 0
		for _, d := range s.fleet {
			waiting += d.waiting()
		}
		line := statusLine(time.Since(began), before, now, waiting, s.staff.restocks.Load(), s.faults.sum())
		if _, err := fmt.Fprintln(s.config.Out, line); err != nil {
			s.config.Logger.Warn("The status line can't be written", "error", err)
			return
		}
		before = now
	}
}

func statusLine(since time.Duration, before, now counts, waiting int, restocks, faults int64) string {
	return fmt.Sprintf("%4ds events/s %-4d receipts/s %-4d outbox %-5d settled %-7d review %-5d duplicates %-5d restocks %-5d faults %d",
		int(since.Round(time.Second).Seconds()), now.published-before.published, now.receipts-before.receipts, waiting,
		now.settled, now.review, now.duplicates, restocks, faults)
}
