package reservation

import (
	"testing"

	"doortab/services/servicestest"
)

func TestMain(m *testing.M) { servicestest.Main(m) }
