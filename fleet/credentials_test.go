package fleet

import (
	"strings"
	"testing"
	"time"

	"doortab/database/databasetest"
)

func passwords(t *testing.T, r *Registry) string {
	t.Helper()
	var file strings.Builder
	if err := r.WriteMosquittoPasswords(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// That Mosquitto reads it so is a test of its configuration in deploy.
func TestMosquittosPasswordFileHasEveryCabinetWithASecret(t *testing.T) {
	t.Parallel()
	r := NewRegistry(databasetest.New(t))
	for _, id := range []int64{10, 9, 2} {
		register(t, r, id)
	}
	if file := passwords(t, r); file != "" {
		t.Errorf("without secrets the file is %q", file)
	}
	secret := string(rotate(t, r, 10))
	rotate(t, r, 9)
	file := passwords(t, r)
	lines := strings.Split(file, "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "9:$7$1$") || !strings.HasPrefix(lines[1], "10:$7$1$") || lines[2] != "" {
		t.Errorf("the file is %q", file)
	}
	if strings.Contains(file, secret) || passwords(t, r) != file {
		t.Error("the file holds a secret, or is another each time")
	}
	rotate(t, r, 9)
	if again := strings.Split(passwords(t, r), "\n"); again[0] == lines[0] || again[1] != lines[1] {
		t.Error("a rotation changes more or less than its own line")
	}
}

func TestRotationsOfASpan(t *testing.T) {
	t.Parallel()
	r := NewRegistry(databasetest.New(t))
	register(t, r, 1)
	register(t, r, 2)
	begun := time.Now()
	rotate(t, r, 2)
	for name, c := range map[string]struct {
		from, to time.Duration
		want     int
	}{
		"around it": {-time.Minute, time.Minute, 1},
		"before it": {-time.Minute, -time.Second, 0},
		"after it":  {time.Minute, time.Hour, 0},
	} {
		list, err := r.Rotations(t.Context(), begun.Add(c.from), begun.Add(c.to))
		if err != nil || len(list) != c.want || c.want == 1 && list[0].DeviceID != 2 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}
