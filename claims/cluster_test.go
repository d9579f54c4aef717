package claims_test

import (
	"sync/atomic"
	"testing"

	"doortab/claims"
	"doortab/services"
	"doortab/services/servicestest"
)

func TestRedisWayRunsOnACluster(t *testing.T) {
	t.Parallel()
	cluster := servicestest.Start(t, services.Options{Cluster: &services.ClusterOptions{}}).Cluster
	f := newFast(t, cluster.URL(), 8)
	p := f.live(40, 1)
	other, _ := f.another(f.url)
	var n atomic.Int64
	got := f.press(p, 500, 50, func() *claims.Service { return []*claims.Service{f.Service, other}[n.Add(1)%2] })
	f.checkSold(p, got, 40)
	f.settled(p)
	f.checkRedis(p)
	if n := f.epochs(p, "'open', 'draining', 'done'"); n != 1 {
		t.Errorf("%d epochs: the database had to help", n)
	}
}

func TestAClusterThatLosesAMasterSellsOnFromTheDatabase(t *testing.T) {
	t.Parallel()
	cluster := servicestest.Start(t, services.Options{Cluster: &services.ClusterOptions{}}).Cluster
	f := newFast(t, cluster.URL(), 8)
	p := f.live(40, 1)
	f.open(p)
	if err := cluster.Masters[1].Kill(); err != nil {
		t.Fatal(err)
	}
	got := f.press(p, 200, 20, func() *claims.Service { return f.Service })
	f.checkSold(p, got, 40)
	if err := cluster.Masters[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.settled(p)
	f.checkBooks(p)
}
