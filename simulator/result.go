package simulator

import (
	"fmt"
	"io"
)

// Result is what a run did and what the comparison of the books found.
type Result struct {
	// Published counts the distinct events that doors reported: each was put in its cabinet's outbox, and its goods were
	// gone by then, whether or not the network let it out. Copies, changed bodies and garbage aren't counted.
	Published int64
	Settled   int64 // distinct events whose receipt said settled, empty or restocked
	Review    int64 // distinct events whose receipt said review
	// Duplicates counts the receipts that said duplicate.
	Duplicates int64

	// Lost counts events that have no settlement or no receipt, or whose order lacks something that the outcome charges; not
	// Pending ones. Where a cabinet's own count is all there is to go by, the outcome must charge that.
	Lost int64
	// Doubled counts events with more than one order, outcome or deduction, or with more on the order than the outcome charges, and
	// orders and deductions on the fleet's cabinets that no event explains.
	Doubled int64
	// Drift counts the rows (cabinet, product) whose book stock isn't what outcomes, restocks, stock-takes and decisions make
	// of it. How far the books are from what is physically there, which sensors and people can mistake, is in Figures.
	Drift int64

	// Pending counts events that were still in an outbox when the drain ended while Doortab was busy answering others: not
	// lost, since their cabinets send them again, and not settled in time.
	Pending int64

	Figures     []Figures       // by kind of cabinet, in the order of physical.Kinds; kinds that the fleet doesn't have are left out
	Restocks    int64           // doors of staff that filled a cabinet up
	Stocktakes  int64           // that staff handed in
	Decisions   int64           // reviews that an operator decided
	Sessions    int64           // doors that an app opened, by a door session
	Resends     int64           // events sent again because no receipt had come
	Faults      map[Fault]int64 // by kind, every kind of Kinds
	Differences []string        // the first of them, one sentence each
}

// Clean reports whether nothing was lost, doubled or has drifted, and everything was answered.
func (r Result) Clean() bool { return r.Lost == 0 && r.Doubled == 0 && r.Drift == 0 && r.Pending == 0 }

// String is the last line of the summary, as section 7 of the design has it.
func (r Result) String() string {
	return fmt.Sprintf("published %d settled %d duplicates %d review %d lost %d doubled %d drift %d",
		r.Published, r.Settled, r.Duplicates, r.Review, r.Lost, r.Doubled, r.Drift)
}

// WriteSummary writes WriteDetails and then WriteVerdict.
func (r Result) WriteSummary(w io.Writer) error {
	if err := r.WriteDetails(w); err != nil {
		return err
	}
	return r.WriteVerdict(w)
}

// WriteVerdict writes what is Pending, if anything, and then String as the last line.
func (r Result) WriteVerdict(w io.Writer) error {
	if r.Pending > 0 {
		_, err := fmt.Fprintf(w, "%d events still unanswered in outboxes: not lost, but not settled in time\n", r.Pending)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, r.String())
	return err
}

// WriteDetails writes how often each fault happened, every difference that is kept, and a table of Figures.
func (r Result) WriteDetails(w io.Writer) error {
	for _, f := range Kinds() {
		if _, err := fmt.Fprintf(w, "fault %-18s %d\n", f, r.Faults[f]); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "resends %d restocks %d stock-takes %d decisions %d door sessions %d\n",
		r.Resends, r.Restocks, r.Stocktakes, r.Decisions, r.Sessions); err != nil {
		return err
	}
	for _, d := range r.Differences {
		if _, err := fmt.Fprintln(w, "difference:", d); err != nil {
			return err
		}
	}
	return writeFigures(w, r.Figures)
}
