package cabinet_test

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"doortab/cabinet"
)

// Bits and digits of the company prefix and of the item reference by partition, copied from GS1 TDS, "SGTIN Partition Table".
var sgtinPartitions = []struct{ prefixBits, prefixDigits, itemBits, itemDigits int }{
	{40, 12, 4, 1}, {37, 11, 7, 2}, {34, 10, 10, 3}, {30, 9, 14, 4}, {27, 8, 17, 5}, {24, 7, 20, 6}, {20, 6, 24, 7},
}

func TestSGTINVectors(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		epc       string
		gtin      string
		serial    int64
		partition int
	}{
		"the design's first":        {"3036142C8C008F8000053244", "08719139005740", 340548, 5},
		"the design's second":       {"303403332C121B2F276CB8E8", "00052427185402", 202524899560, 5},
		"the design's third":        {"3000E2009A9040060AF00000", "02426681845927", 0, 0},
		"lower case":                {"3036142c8c008f8000053244", "08719139005740", 340548, 5},
		"GS1 TDS, its own example":  {"3074257BF7194E4000001A85", "80614141123458", 6789, 5},
		"all zeros behind a header": {"300000000000000000000000", "00000000000000", 0, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tag, ok := cabinet.DecodeSGTIN(c.epc)
			if !ok || tag.GTIN14 != c.gtin {
				t.Fatalf("got %+v %v, want GTIN %s", tag, ok, c.gtin)
			}
			if name != "the design's third" && (tag.Serial != c.serial || tag.Partition != c.partition) {
				t.Errorf("got %+v, want serial %d partition %d", tag, c.serial, c.partition)
			}
		})
	}
}

func TestSGTINOfEachPartition(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for partition, p := range sgtinPartitions {
		for range 200 {
			prefix, item := random.Int64N(pow10(p.prefixDigits)), random.Int64N(pow10(p.itemDigits))
			filter, serial := random.IntN(8), random.Int64N(1<<38)
			epc := encodeSGTIN(filter, partition, prefix, item, serial)
			reference := fmt.Sprintf("%0*d", p.itemDigits, item)
			company := fmt.Sprintf("%0*d", p.prefixDigits, prefix)
			want := cabinet.SGTIN{
				GTIN14: withCheckDigit(reference[:1] + company + reference[1:]), Serial: serial,
				CompanyPrefix: company, Filter: filter, Partition: partition,
			}
			if got, ok := cabinet.DecodeSGTIN(epc); !ok || got != want {
				t.Fatalf("%s: got %+v %v, want %+v", epc, got, ok, want)
			}
		}
	}
}

func TestWhatIsNoSGTIN(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"empty":                        "",
		"too short":                    "3036142C8C008F800005324",
		"too long":                     "3036142C8C008F800005324400",
		"not hex":                      "3036142C8C008F800005324G",
		"SSCC-96":                      "3136142C8C008F8000053244",
		"SGTIN-198":                    "3636142C8C008F8000053244",
		"GID-96":                       "3536142C8C008F8000053244",
		"unprogrammed":                 "000000000000000000000000",
		"all ones":                     "FFFFFFFFFFFFFFFFFFFFFFFF",
		"partition 7":                  "301C142C8C008F8000053244",
		"prefix with too many digits":  encodeSGTIN(1, 5, 10_000_000, 0, 1),
		"item with too many digits":    encodeSGTIN(1, 5, 1, 1_000_000, 1),
		"item 10 in partition 0":       encodeSGTIN(1, 0, 1, 10, 1),
		"prefix 10^12 in partition 0":  encodeSGTIN(1, 0, 1_000_000_000_000, 1, 1),
		"text of the right length":     strings.Repeat("x", 24),
		"not ASCII of the right bytes": strings.Repeat("é", 12),
	}
	for name, epc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tag, ok := cabinet.DecodeSGTIN(epc); ok || tag != (cabinet.SGTIN{}) {
				t.Errorf("%q: got %+v", epc, tag)
			}
		})
	}
}

// FuzzDecodeSGTIN: no text panics, and what is read is 14 digits with their check digit and encodes to the same tag.
func FuzzDecodeSGTIN(f *testing.F) {
	f.Add("3036142C8C008F8000053244")
	f.Add("3000E2009A9040060AF00000")
	f.Add("3036142C8C008F800005324")
	f.Fuzz(func(t *testing.T, epc string) {
		tag, ok := cabinet.DecodeSGTIN(epc)
		if !ok {
			return
		}
		if len(tag.GTIN14) != 14 || withCheckDigit(tag.GTIN14[:13]) != tag.GTIN14 {
			t.Fatalf("%s: GTIN %q", epc, tag.GTIN14)
		}
		p := sgtinPartitions[tag.Partition]
		item := tag.GTIN14[:1] + tag.GTIN14[1+p.prefixDigits:13]
		if again := encodeSGTIN(tag.Filter, tag.Partition, number(tag.CompanyPrefix), number(item), tag.Serial); again != strings.ToUpper(epc) {
			t.Fatalf("%s: %+v encodes to %s", epc, tag, again)
		}
	})
}

func BenchmarkDecodeSGTIN(b *testing.B) {
	for b.Loop() {
		cabinet.DecodeSGTIN("3036142C8C008F8000053244")
	}
}

// encodeSGTIN shifts one large number together, field by field.
func encodeSGTIN(filter, partition int, prefix, item, serial int64) string {
	n := big.NewInt(0x30)
	p := sgtinPartitions[partition]
	for _, field := range []struct {
		value int64
		bits  int
	}{{int64(filter), 3}, {int64(partition), 3}, {prefix, p.prefixBits}, {item, p.itemBits}, {serial, 38}} {
		n.Lsh(n, uint(field.bits)).Or(n, big.NewInt(field.value))
	}
	return strings.ToUpper(hex.EncodeToString(n.FillBytes(make([]byte, 12))))
}

// withCheckDigit adds the digit that makes the weighted sum a multiple of 10.
func withCheckDigit(digits string) string {
	for d := range 10 {
		whole, sum := fmt.Sprintf("%s%d", digits, d), 0
		for i := range whole {
			fromRight := len(whole) - 1 - i
			sum += int(whole[i]-'0') * (1 + 2*(fromRight%2))
		}
		if sum%10 == 0 {
			return whole
		}
	}
	panic("some digit makes it a multiple of 10")
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

func number(digits string) int64 {
	n := int64(0)
	for _, d := range digits {
		n = 10*n + int64(d-'0')
	}
	return n
}
