package reconcile

import "time"

// Hurry shortens what a service waits for counters to settle and for the write-back.
func (s *Service) Hurry(settle, fence time.Duration) { s.settleFor, s.fenceFor = settle, fence }
