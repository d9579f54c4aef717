package services_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"doortab/services"
	"doortab/services/servicestest"
)

func TestAClusterServesAllSlots(t *testing.T) {
	t.Parallel()
	cluster := servicestest.Start(t, services.Options{Cluster: &services.ClusterOptions{}}).Cluster
	o, err := goredis.ParseClusterURL(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClusterClient(o)
	t.Cleanup(func() { _ = client.Close() })
	used := map[string]bool{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if err := client.Set(t.Context(), key, key, 0).Err(); err != nil {
			t.Fatalf("set %s: %v", key, err)
		}
		master, err := client.MasterForKey(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		used[master.Options().Addr] = true
	}
	if len(used) != 3 {
		t.Errorf("keys lie on %d masters", len(used))
	}
}
