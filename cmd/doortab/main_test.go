package main

import (
	"flag"
	"os"
	"testing"

	"doortab/services/servicestest"
)

// asProgram makes the test binary the program itself, so that the race detector watches the processes that tests start.
const asProgram = "DOORTAB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	flag.Parse()
	// Most of these tests wait for other processes: more of them at once than there are processors.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	servicestest.Main(m)
}
