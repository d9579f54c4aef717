package bench

import (
	"errors"
	"fmt"
	"os"
)

// wireCosts are the microseconds of a processor that each program took for the receipts of one side, by the program's name:
// where the machine is shared, they tell more than the throughput.
type wireCosts struct {
	receipts float64
	micros   map[string]float64
}

// programs are those that work for a receipt, by process id.
func (w *wire) programs(crew []*process) map[int]string {
	programs := map[int]string{
		w.lab.servers.MariaDB.PID(): "mariadb", w.lab.servers.Redis.PID(): "redis", w.broker.PID(): "mosquitto", os.Getpid(): "cabinets",
	}
	for _, p := range crew {
		programs[p.cmd.Process.Pid] = "worker"
	}
	return programs
}

// around adds what work cost, which returns how many receipts it got.
func (c *wireCosts) around(programs map[int]string, work func() (int, error)) error {
	before, err := processorTimes(programs)
	if err != nil {
		return err
	}
	receipts, failed := work()
	after, err := processorTimes(programs)
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	if c.micros == nil {
		c.micros = map[string]float64{}
	}
	c.receipts += float64(receipts)
	for name, micros := range after {
		c.micros[name] += micros - before[name]
	}
	return nil
}

func processorTimes(programs map[int]string) (map[string]float64, error) {
	times := map[string]float64{}
	for pid, name := range programs {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil, fmt.Errorf("processor time of %s: %w", name, err)
		}
		micros, err := processorTime(string(stat))
		if err != nil {
			return nil, err
		}
		times[name] += micros
	}
	return times, nil
}

// perReceipt writes each program's share, and the sum of all, as details.
func (c *wireCosts) perReceipt(details map[string]float64, side string) {
	total := 0.0
	for name, micros := range c.micros {
		details[side+"_"+name+"_us"] = ratio(micros, c.receipts)
		total += ratio(micros, c.receipts)
	}
	details[side+"_us"] = total
}
