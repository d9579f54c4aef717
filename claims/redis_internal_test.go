package claims

import (
	"context"
	"errors"
	"testing"

	"github.com/sony/gobreaker/v2"

	"doortab/services/servicestest"
)

// Callers who have gone say nothing about Redis: the breaker stays closed, however many they are.
func TestACallerWhoHasGoneDoesNotMakeRedisCountAsDown(t *testing.T) {
	t.Parallel()
	r, err := OpenRedis(RedisConfig{URL: servicestest.Redis(t).URL(), Installation: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 3 * redisFailures {
		if _, err := r.pipeline(gone, func(p pipeliner) { p.Ping(gone) }); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, not what the caller's context says", err)
		}
	}
	if state := r.Breaker(); state != gobreaker.StateClosed {
		t.Errorf("the breaker is %s", state)
	}
	going, leave := context.WithCancel(t.Context())
	if _, err := r.pipeline(going, func(p pipeliner) {
		leave()
		p.Ping(going)
	}); err != nil {
		t.Errorf("a command of a caller who goes meanwhile: %v", err)
	}
}
