package main

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
	"doortab/settlement"
)

type promotionCommand struct {
	Create     promotionCreate     `cmd:"" help:"Draft a promotion: a product at a special price."`
	List       promotionList       `cmd:"" help:"List promotions, newest first."`
	Show       promotionShow       `cmd:"" help:"Show one promotion, with how much of it is taken."`
	Transition promotionTransition `cmd:"" help:"Make a promotion warming, live, paused or ended."`
}

type promotionCreate struct {
	databaseFlags
	Name     string        `arg:"" help:"What people call it."`
	Product  int64         `required:"" min:"1" max:"9007199254740991" help:"The product's number."`
	Price    int64         `required:"" min:"0" max:"9007199254740991" help:"What a unit costs with it, in minor units."`
	Quota    int64         `required:"" min:"1" max:"1000000000" help:"Units in all."`
	PerUser  int64         `default:"1" min:"1" max:"1000" help:"Units for each person."`
	NoClaim  bool          `help:"It applies at the door to whoever comes first, and nobody claims it."`
	Site     string        `help:"The cabinets of one site; the whole fleet without it."`
	StartsAt moment        `required:"" placeholder:"TIME" help:"When it begins: 2026-12-24 (UTC), or 2026-12-24T10:00:00+08:00."`
	EndsAt   moment        `required:"" placeholder:"TIME" help:"The first moment that no longer counts."`
	ClaimTTL time.Duration `default:"15m" min:"1s" max:"168h" help:"How long a claim is good, in whole seconds."`
	Way      string        `enum:"database,redis" default:"database" help:"How claims are taken: ${enum}."`
}

// Run is called by the command line.
func (p *promotionCreate) Run(ctx context.Context, c *console) error {
	if p.ClaimTTL%time.Second != 0 {
		return fmt.Errorf("--claim-ttl %s: give whole seconds, such as 90s", p.ClaimTTL)
	}
	return p.withSchema(ctx, c, func(db *database.DB) error {
		return c.changed(ctx, db, func(tx *gorm.DB) (promotion.Promotion, error) {
			return promotion.Create(tx, promotion.Promotion{
				Name: p.Name, ProductID: p.Product, PriceMinor: p.Price, Quota: p.Quota, PerUser: p.PerUser, NeedsClaim: !p.NoClaim,
				Site: p.Site, StartsAt: p.StartsAt.at, EndsAt: p.EndsAt.at, ClaimTTLS: int64(p.ClaimTTL / time.Second), Way: promotion.Way(p.Way),
			}, database.Now())
		})
	})
}

// changed runs a change of a promotion in a transaction of its own and prints what it came to.
func (c *console) changed(ctx context.Context, db *database.DB, change func(*gorm.DB) (promotion.Promotion, error)) error {
	var p promotion.Promotion
	err := db.InTx(ctx, func(tx *gorm.DB) (err error) {
		p, err = change(tx)
		return err
	})
	if err != nil {
		return err
	}
	return c.promotion(p)
}

func (c *console) promotion(p promotion.Promotion) error {
	return c.json(map[string]any{
		"promotionId": settlement.FormatID(p.PromotionID), "name": p.Name, "productId": p.ProductID, "priceMinor": p.PriceMinor,
		"quota": p.Quota, "perUser": p.PerUser, "needsClaim": p.NeedsClaim, "site": p.Site, "startsAt": p.StartsAt, "endsAt": p.EndsAt,
		"claimTtlSeconds": p.ClaimTTLS, "way": p.Way, "state": p.State, "taken": p.Taken, "left": p.Left(),
		"createdAt": p.CreatedAt,
	})
}

type promotionList struct {
	databaseFlags
	State string `enum:",draft,warming,live,paused,ended" default:"" help:"Only those in this state."`
	Limit int    `default:"50" min:"1" max:"100000" help:"How many at most."`
}

// Run is called by the command line.
func (p *promotionList) Run(ctx context.Context, c *console) error {
	return p.withSchema(ctx, c, func(db *database.DB) error {
		list, err := promotion.List(ctx, db, promotion.Filter{State: promotion.State(p.State)}, 0, p.Limit)
		for _, one := range list {
			c.printf("%d  %-7s  %d of %d taken  product %d for %d  %s to %s  %s\n", one.PromotionID, one.State, one.Taken, one.Quota,
				one.ProductID, one.PriceMinor, one.StartsAt.Format(time.RFC3339), one.EndsAt.Format(time.RFC3339), one.Name)
		}
		return err
	})
}

// promotionArg is the argument that names a promotion.
type promotionArg struct {
	ID string `arg:"" help:"The number that the list shows."`
}

func (a promotionArg) parse() (int64, error) {
	id, ok := settlement.ParseID(a.ID)
	if !ok {
		return 0, fmt.Errorf("promotion %q: give the number that `doortab promotion list` shows", a.ID)
	}
	return id, nil
}

type promotionShow struct {
	databaseFlags
	promotionArg
}

// Run is called by the command line.
func (p *promotionShow) Run(ctx context.Context, c *console) error {
	id, err := p.parse()
	if err != nil {
		return err
	}
	return p.withSchema(ctx, c, func(db *database.DB) error {
		one, err := promotion.Read(db.Read(ctx), id)
		if err != nil {
			return err
		}
		return c.promotion(one)
	})
}

type promotionTransition struct {
	databaseFlags
	promotionArg
	To string `arg:"" enum:"warming,live,paused,ended" help:"What it becomes: ${enum}."`
}

// Run is called by the command line.
func (p *promotionTransition) Run(ctx context.Context, c *console) error {
	id, err := p.parse()
	if err != nil {
		return err
	}
	return p.withSchema(ctx, c, func(db *database.DB) error {
		return c.changed(ctx, db, func(tx *gorm.DB) (promotion.Promotion, error) {
			return promotion.Transition(tx, id, promotion.State(p.To), database.Now())
		})
	})
}
