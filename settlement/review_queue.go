package settlement

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"doortab/database"
)

const queueReadFor = 2 * time.Second

// reviewQueue tells at each scrape how many reviews wait and for how long the oldest does. Where the database doesn't
// answer it tells nothing, so that the other metrics still are read.
type reviewQueue struct {
	db     *database.DB
	log    *slog.Logger
	open   *prometheus.Desc
	oldest *prometheus.Desc
}

func newReviewQueue(db *database.DB, log *slog.Logger) *reviewQueue {
	return &reviewQueue{
		db: db, log: log,
		open:   prometheus.NewDesc("doortab_reviews_open", "Reviews that wait for a person.", nil, nil),
		oldest: prometheus.NewDesc("doortab_review_oldest_seconds", "Age of the oldest review that waits for a person; 0 for none.", nil, nil),
	}
}

// Describe is called at registration.
func (q *reviewQueue) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- q.open
	descriptions <- q.oldest
}

// Collect is called at each scrape.
func (q *reviewQueue) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueReadFor)
	defer cancel()
	waiting, since, err := q.read(ctx)
	if err != nil {
		q.log.Debug("Reviews can't be counted.", "error", err)
		return
	}
	age := 0.0
	if since != nil {
		age = max(0, time.Since(*since).Seconds())
	}
	metrics <- prometheus.MustNewConstMetric(q.open, prometheus.GaugeValue, float64(waiting))
	metrics <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, age)
}

// read asks the index of reviews by status alone: ids are in the order of time.
func (q *reviewQueue) read(ctx context.Context) (waiting int64, since *time.Time, err error) {
	var row struct {
		Waiting int64
		Since   *time.Time
	}
	err = q.db.Read(ctx).Raw(`SELECT COUNT(*) AS waiting,
		(SELECT created_at FROM reviews WHERE status = ? ORDER BY review_id LIMIT 1) AS since
		FROM reviews WHERE status = ?`, openReview, openReview).Scan(&row).Error
	return row.Waiting, row.Since, err
}
