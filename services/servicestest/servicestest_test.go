package servicestest_test

import (
	"testing"

	"doortab/services"
	"doortab/services/servicestest"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

func TestTestsShareOneOfEachService(t *testing.T) {
	tests := map[string]func(t *testing.T) *services.Process{
		"mariadb":   func(t *testing.T) *services.Process { return &servicestest.MariaDB(t).Process },
		"redis":     func(t *testing.T) *services.Process { return &servicestest.Redis(t).Process },
		"mosquitto": func(t *testing.T) *services.Process { return &servicestest.Mosquitto(t).Process },
	}
	for name, service := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := service(t), service(t)
			if first != second || first.PID() == 0 {
				t.Errorf("processes %d and %d, want one that runs", first.PID(), second.PID())
			}
		})
	}
}

func TestAPrivateServiceIsAnother(t *testing.T) {
	t.Parallel()
	own := servicestest.Start(t, services.Options{Redis: &services.RedisOptions{}})
	if own.Redis.URL() == servicestest.Redis(t).URL() {
		t.Error("a private Redis is the shared one")
	}
}
