package claims

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/promotion"
)

// newAnswers counts what claims with a good token came to, whichever the way: the refusals of the database way are seen nowhere else.
func newAnswers(r prometheus.Registerer) *prometheus.CounterVec {
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "doortab_claims_total",
		Help: "Answers to claims, by the way that the promotion is set to and by outcome: a state of the claim, why it was refused, or error.",
	}, []string{"way", "outcome"})
	for _, way := range []promotion.Way{promotion.Database, promotion.Redis} {
		answers.WithLabelValues(string(way), string(promotion.Held))
	}
	if r != nil {
		r.MustRegister(answers)
	}
	return answers
}

func outcomeOf(c promotion.Claim, err error) string {
	var refused promotion.Refusal
	switch {
	case errors.As(err, &refused):
		return string(refused)
	case err != nil:
		return "error"
	case c.State == promotion.Refused:
		return string(c.Reason)
	default:
		return string(c.State)
	}
}
