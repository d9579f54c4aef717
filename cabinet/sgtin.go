package cabinet

import "encoding/hex"

// SGTIN is a serialised GTIN as an SGTIN-96 tag carries it (GS1 EPC Tag Data Standard, section "SGTIN-96").
type SGTIN struct {
	GTIN14        string // 14 digits, leading zeros and check digit included
	Serial        int64  // 0 to 2^38-1
	CompanyPrefix string // 6 to 12 digits, leading zeros included
	Filter        int    // 0 to 7: what kind of packing
	Partition     int    // 0 to 6: how the 44 bits and 13 digits are split
}

// The layout of SGTIN-96: 8 bits header, 3 filter, 3 partition, 44 company prefix and item reference, 38 serial.
const (
	sgtinBytes    = 12
	sgtinHeader   = 0x30
	sgtinSplit    = 44 // bits of company prefix and item reference together
	sgtinDigits   = 13 // decimal digits of both together, the indicator included
	sgtinSerial   = 38 // bits
	prefixDigits0 = 12 // digits of the company prefix in partition 0, one fewer in each further one
)

// prefixBits of the company prefix by partition (GS1 TDS, "SGTIN Partition Table").
var prefixBits = [...]int{40, 37, 34, 30, 27, 24, 20}

// DecodeSGTIN reads the EPC of a tag in hex of either case. ok is false for everything that isn't an SGTIN-96: another
// length or header, the reserved partition 7, a company prefix or item reference with more digits than its partition has.
func DecodeSGTIN(epc string) (tag SGTIN, ok bool) {
	var raw [sgtinBytes]byte
	if len(epc) != hex.EncodedLen(sgtinBytes) {
		return SGTIN{}, false
	}
	if _, err := hex.Decode(raw[:], []byte(epc)); err != nil || raw[0] != sgtinHeader {
		return SGTIN{}, false
	}
	tag.Filter, tag.Partition = int(raw[1]>>5), int(raw[1]>>2&7)
	if tag.Partition >= len(prefixBits) {
		return SGTIN{}, false
	}
	prefixDigits, itemBits := prefixDigits0-tag.Partition, sgtinSplit-prefixBits[tag.Partition]
	split := bits(raw, 14, sgtinSplit)
	var gtin [14]byte // the indicator, the company prefix, the item reference without its indicator, the check digit
	prefixFits := decimal(gtin[1:1+prefixDigits], split>>itemBits)
	// The item reference's first digit is the indicator and is written over the prefix's last one, which then comes back.
	reference := gtin[prefixDigits:sgtinDigits]
	last := reference[0]
	itemFits := decimal(reference, split&(1<<itemBits-1))
	gtin[0], reference[0] = reference[0], last
	if !prefixFits || !itemFits {
		return SGTIN{}, false
	}
	gtin[sgtinDigits] = checkDigit(gtin[:sgtinDigits])
	tag.GTIN14, tag.CompanyPrefix = string(gtin[:]), string(gtin[1:1+prefixDigits])
	tag.Serial = bits(raw, 14+sgtinSplit, sgtinSerial)
	return tag, true
}

// decimal writes the value with leading zeros. It reports whether the digits suffice.
func decimal(digits []byte, value int64) bool {
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + value%10)
		value /= 10
	}
	return value == 0
}

// bits reads count bits, at most 62, from the bit at on, the first being the highest of the first byte.
func bits(raw [sgtinBytes]byte, at, count int) int64 {
	value := int64(0)
	for i := at; i < at+count; i++ {
		value = value<<1 | int64(raw[i/8]>>(7-i%8)&1)
	}
	return value
}

// checkDigit of the 13 digits before it (GS1 General Specifications, "Check digit calculation"): weights 3 and 1 in turn.
func checkDigit(digits []byte) byte {
	sum := 0
	for i, d := range digits {
		weight := 3 - 2*(i%2)
		sum += weight * int(d-'0')
	}
	return byte('0' + (10-sum%10)%10)
}
