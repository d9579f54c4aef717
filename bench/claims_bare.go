package bench

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/url"
	"os/exec"
	"strconv"
	"strings"

	"doortab/claims"
)

// bareKeys are the keys of a bucket that no promotion has.
var bareKeys = []string{"bench:{bare}:units", "bench:{bare}:users", "bench:{bare}:tokens", "bench:{bare}:stream"}

// bareScripts has redis-benchmark run the script of claims by itself, on a bucket that has units and on one that is sold out, and
// adds which part of that the Redis way reaches.
func (l *Lab) bareScripts(ctx context.Context, details map[string]float64) error {
	for _, of := range []struct {
		name   string
		bucket []string
	}{
		{"claimed", []string{"units", "1000000000"}},
		{"refused", []string{"units", "0", "low", "1", "until", "9999999999999"}},
	} {
		l.say("redis-benchmark, the script of claims by itself, %s", of.name)
		perSecond, err := l.bareScript(ctx, of.bucket)
		if err != nil {
			return err
		}
		details["bare_"+of.name] = perSecond
		details["redis_"+of.name+"_of_bare"] = ratio(details["redis_"+of.name], perSecond)
	}
	return nil
}

func (l *Lab) bareScript(ctx context.Context, bucket []string) (perSecond float64, err error) {
	once := []string{"-c", "1", "-n", "1"}
	text, sha := claims.Script()
	for _, command := range [][]string{
		append([]string{"DEL"}, bareKeys...),
		append([]string{"HSET", bareKeys[0]}, bucket...),
		{"SCRIPT", "LOAD", text},
	} {
		if _, err := l.redisBenchmark(ctx, append(once, command...)); err != nil {
			return 0, err
		}
	}
	run := []string{"-c", strconv.Itoa(pressers), "-n", strconv.Itoa(l.scripts), "-r", "1000000000", "EVALSHA", sha, strconv.Itoa(len(bareKeys))}
	run = append(append(run, bareKeys...), "__rand_int__", "__rand_int__", "1", "1", "7", " bench")
	perSecond, err = l.redisBenchmark(ctx, run)
	if err != nil {
		return 0, err
	}
	_, err = l.redisBenchmark(ctx, append(append(once, "DEL"), bareKeys...))
	return perSecond, err
}

// redisBenchmark returns the requests a second that redis-benchmark measured.
func (l *Lab) redisBenchmark(ctx context.Context, args []string) (float64, error) {
	server, err := url.Parse(l.servers.Redis.URL())
	if err != nil {
		return 0, fmt.Errorf("find Redis: %w", err)
	}
	password, _ := server.User.Password()
	args = append([]string{"-h", server.Hostname(), "-p", server.Port(), "-a", password, "--csv"}, args...)
	out, err := exec.CommandContext(ctx, "redis-benchmark", args...).Output() //nolint:gosec // a program of Redis, arguments of ours
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark, which comes with redis-tools: %w", err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[1]) < 2 {
		return 0, fmt.Errorf("redis-benchmark said %q", out)
	}
	perSecond, err := strconv.ParseFloat(rows[1][1], 64)
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark said %q", out)
	}
	return perSecond, nil
}
