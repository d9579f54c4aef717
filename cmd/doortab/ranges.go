package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// checkRanges refuses numbers that no run can mean. Each numeric flag carries the least and the most that it may be in
// its tags min and max (a test sees to it); NaN is in no range.
func checkRanges(parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		where := "--" + flag.Name
		if len(flag.Envs) > 0 {
			where += " (or " + strings.Join(flag.Envs, ", ") + ")"
		}
		if err := inRange(where, flag.Value); err != nil {
			return err
		}
	}
	return nil
}

func inRange(where string, value *kong.Value) error {
	is, ok := number(value.Target)
	if !ok || !value.Tag.Has("min") {
		return nil
	}
	least, err := limit(value, "min")
	if err != nil {
		return err
	}
	most, err := limit(value, "max")
	if err != nil {
		return err
	}
	if is >= least && is <= most {
		return nil
	}
	return fmt.Errorf("%s: %v is out of range, give %s to %s", where, value.Target.Interface(), value.Tag.Get("min"), value.Tag.Get("max"))
}

// number is a numeric flag's value; a duration in nanoseconds.
func number(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	default:
		return 0, false
	}
}

func limit(value *kong.Value, tag string) (float64, error) {
	text := value.Tag.Get(tag)
	if value.Target.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%s of %s: %w", tag, value.Name, err)
		}
		return float64(d), nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", tag, value.Name, err)
	}
	return n, nil
}
