package bench

import (
	"context"
	"errors"
	"fmt"

	"doortab/promotion"
)

var claimsPart = part{
	name: "claims", about: "units of a promotion claimed and refused, both ways, and 20,000 users who press for 500 units", run: measureClaims,
	goals: []goal{
		{label: "Redis way, claims ÷ usual design", value: byRatio, must: 10, aim: 10},
		{label: "Redis way, refusals ÷ usual design", value: byDetail("redis_refused_ratio"), must: 10, aim: 10},
		{label: "Redis way, units taken ÷ bare EVALSHA", value: byDetail("redis_taken_of_bare"), must: 0.5, aim: 0.5},
		{label: "Redis way, refusals ÷ bare EVALSHA", value: byDetail("redis_refused_of_bare"), must: 0.5, aim: 0.5},
		{label: "database way, claims ÷ usual design", value: byDetail("database_claimed_ratio"), must: 5, aim: 5},
		{label: "database way, refusals ÷ usual design", value: byDetail("database_refused_ratio"), must: 5, aim: 5},
	},
}

// endless is a quota that no turn uses up.
const endless = promotion.MaxQuota

// measureClaims measures claims that succeed, claims that are refused, the scripts alone, and then the crowds.
func measureClaims(ctx context.Context, l *Lab) (f Figure, err error) {
	c, err := l.newCounter(ctx)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.close(ctx, l)) }()
	if err := c.chooseCrew(ctx, l); err != nil {
		return f, err
	}
	claimed, err := c.alternate(ctx, l, "claims", endless)
	if err != nil {
		return f, err
	}
	refused, err := c.alternate(ctx, l, "refusals", 1)
	if err != nil {
		return f, err
	}
	f = newFigure(claimed[promotion.Redis].median, claimed[theUsual].median, "claims/s")
	f.Details["slices"], f.Details["slice_seconds"] = float64(l.slices), l.slice.Seconds()
	f.Details["usual_workers"] = float64(c.crew)
	detailWays(f.Details, "claimed", claimed)
	detailWays(f.Details, "refused", refused)
	if f.Details["redis_taken"], err = c.burst(ctx, l); err != nil {
		return f, err
	}
	if err := l.bareScripts(ctx, f.Details); err != nil {
		return f, err
	}
	f.Details["redis_taken_of_bare"] = ratio(f.Details["redis_taken"], f.Details["bare_claimed"])
	return f, c.crowds(ctx, l, f.Details)
}

// theUsual is the usual design among the ways.
const theUsual promotion.Way = "usual"

var allWays = []promotion.Way{promotion.Redis, promotion.Database, theUsual}

func detailWays(details map[string]float64, of string, spreads map[promotion.Way]spread) {
	for _, way := range allWays {
		spreads[way].detail(details, string(way)+"_"+of)
		if way != theUsual {
			details[string(way)+"_"+of+"_ratio"] = ratio(spreads[way].median, spreads[theUsual].median)
		}
	}
}

// alternate lets all ways work in turn on a promotion each. A quota of 1 is sold out beforehand, so that all that follows is refused.
func (c *counter) alternate(ctx context.Context, l *Lab, what string, quota int64) (map[promotion.Way]spread, error) {
	var sides []side
	for _, way := range allWays {
		id, err := c.offer(ctx, way, quota)
		if err != nil {
			return nil, err
		}
		if quota == 1 {
			if got, err := c.press(ctx, way, id, c.nextUser()); err != nil || !got {
				return nil, fmt.Errorf("sell promotion %d out: claimed %t: %w", id, got, err)
			}
		}
		sides = append(sides, side{string(way) + " " + what, c.crowd(way, id, quota == endless)})
	}
	spreads, err := l.alternate(ctx, sides...)
	if err != nil {
		return nil, err
	}
	byWay := map[promotion.Way]spread{}
	for i, way := range allWays {
		byWay[way] = spreads[i]
	}
	return byWay, nil
}
