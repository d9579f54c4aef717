package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"doortab/admin"
	"doortab/claims"
	"doortab/database"
	"doortab/deadletter"
	"doortab/fleet"
	"doortab/migrations"
	"doortab/settlement"
)

// withSchema runs a command on a database that this program can work on.
func (f *databaseFlags) withSchema(ctx context.Context, c *console, do func(*database.DB) error) error {
	return f.with(ctx, c, func(db *database.DB) error {
		if err := migrations.Check(ctx, db); err != nil {
			return err
		}
		return do(db)
	})
}

type tokenCommand struct {
	Create tokenCreate `cmd:"" help:"Make a token; it is shown this once."`
}

type tokenCreate struct {
	databaseFlags
	Role string `required:"" enum:"viewer,restocker,operator,admin,app" help:"What it may do: ${enum}."`
	Name string `default:"cli" help:"Whose it is; an app token acts for the app of this name."`
}

// Run is called by the command line.
func (t *tokenCreate) Run(ctx context.Context, c *console) error {
	return t.withSchema(ctx, c, func(db *database.DB) error {
		token, err := admin.CreateToken(ctx, db, t.Name, admin.Role(t.Role))
		if err != nil {
			return err
		}
		return c.json(map[string]any{"id": token.ID, "role": token.Role, "token": token.Secret})
	})
}

type cabinetCommand struct {
	Send cabinetSend `cmd:"" help:"Be a cabinet for one event, and print its receipt."`
	Add  cabinetAdd  `cmd:"" help:"Register a cabinet and give it a secret; the secret is shown this once."`
}

type cabinetAdd struct {
	databaseFlags
	DeviceID int64  `arg:"" help:"The number that the cabinet reports as deviceId."`
	Name     string `required:"" help:"What people call it."`
	Site     string `help:"Where it stands."`
}

// Run is called by the command line.
func (a *cabinetAdd) Run(ctx context.Context, c *console) error {
	return a.withSchema(ctx, c, func(db *database.DB) error {
		registry := fleet.NewRegistry(db)
		cabinet := fleet.Cabinet{DeviceID: a.DeviceID, Name: a.Name, Site: a.Site}
		if _, err := registry.Register(ctx, cabinet); err != nil {
			return err
		}
		secret, err := registry.RotateSecret(ctx, a.DeviceID)
		if err != nil {
			return err
		}
		return c.json(map[string]string{"username": fmt.Sprint(a.DeviceID), "secret": secret})
	})
}

type deadLettersCommand struct {
	List    lettersList    `cmd:"" help:"List the messages, newest first."`
	Retry   lettersRetry   `cmd:"" help:"Settle a message as if it came again."`
	Discard lettersDiscard `cmd:"" help:"Remove a message for good."`
}

type lettersList struct {
	databaseFlags
	Limit int `default:"50" min:"1" max:"100000" help:"How many at most."`
}

// Run is called by the command line.
func (l *lettersList) Run(ctx context.Context, c *console) error {
	return l.withSchema(ctx, c, func(db *database.DB) error {
		letters, err := deadletter.List(ctx, db, 0, l.Limit)
		if err != nil {
			return err
		}
		for _, letter := range letters {
			c.printf("%s  %s  %-18s %q: %q\n", settlement.FormatID(letter.DeadLetterID), letter.ReceivedAt.Format(time.RFC3339),
				letter.Reason, letter.Topic, letter.Detail)
		}
		return nil
	})
}

// letterID is the argument that names a dead letter.
type letterID struct {
	ID string `arg:"" help:"The number that the list shows."`
}

func (l letterID) parse() (int64, error) {
	id, ok := settlement.ParseID(l.ID)
	if !ok {
		return 0, fmt.Errorf("dead letter %q: give the number that `doortab dead-letters list` shows", l.ID)
	}
	return id, nil
}

type lettersRetry struct {
	databaseFlags
	letterID
	Currency string `default:"CNY" help:"ISO 4217 code of every price."`
}

// Run is called by the command line.
func (l *lettersRetry) Run(ctx context.Context, c *console) error {
	id, err := l.parse()
	if err != nil {
		return err
	}
	return l.withSchema(ctx, c, func(db *database.DB) error {
		counter := claims.New(claims.Config{DB: db, Logger: l.logger(c)})
		defer counter.Close()
		switch claim, err := counter.RetryDeadLetter(ctx, id); {
		case err == nil:
			return c.json(map[string]any{
				"claimId": settlement.FormatID(claim.ClaimID), "state": claim.State, "userId": claim.UserID, "quantity": claim.Quantity,
			})
		case !errors.Is(err, claims.ErrNotClaim):
			return err
		}
		service := settlement.New(settlement.Config{DB: db, Currency: l.Currency, Logger: l.logger(c)})
		answer, err := service.RetryDeadLetter(ctx, id)
		switch {
		case errors.Is(err, settlement.ErrPayloadCut):
			return fmt.Errorf("%w: it can only be discarded", err)
		case err != nil:
			return err
		}
		return c.json(answer.Receipt)
	})
}

type lettersDiscard struct {
	databaseFlags
	letterID
}

// Run is called by the command line.
func (l *lettersDiscard) Run(ctx context.Context, c *console) error {
	id, err := l.parse()
	if err != nil {
		return err
	}
	return l.withSchema(ctx, c, func(db *database.DB) error {
		if err := deadletter.Discard(ctx, db, id); err != nil {
			return err
		}
		c.printf("discarded %d\n", id)
		return nil
	})
}

// json prints one line of JSON.
func (c *console) json(value any) error {
	return json.NewEncoder(c.out).Encode(value)
}
