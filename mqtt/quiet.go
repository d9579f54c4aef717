package mqtt

import (
	"context"
	"log/slog"
)

// quiet passes the server's log on as debug lines, its errors as warnings, and never a packet, which may hold a secret.
type quiet struct{ to slog.Handler }

func (quiet) level(l slog.Level) slog.Level {
	if l >= slog.LevelError {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool { return q.to.Enabled(ctx, q.level(l)) }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, q.level(r.Level), "MQTT broker: "+r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "pk" && a.Key != "packet" && a.Key != "will" {
			out.AddAttrs(a)
		}
		return true
	})
	return q.to.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.to.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.to.WithGroup(name)} }
