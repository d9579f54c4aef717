package claims

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"doortab/promotion"
)

// streamed is an entry of a bucket's stream.
type streamed struct {
	epoch  *epoch
	bucket int
	id     string
	ask    promotion.Ask
	text   string

	malformed error // it is no claim
}

// readStreamed reads what the claim script wrote: claim id, user, quantity, the token's 16 bytes and behind them when it was
// asked for, in Unix milliseconds, and by which app.
func readStreamed(e *epoch, bucket int, message redis.XMessage) (streamed, error) {
	ms, no, _ := strings.Cut(message.ID, "-")
	text, _ := message.Values["claim"].(string)
	entry := streamed{epoch: e, bucket: bucket, id: message.ID, text: text}
	head := strings.SplitN(text, " ", 4)
	if len(head) != 4 || len(head[3]) < len(promotion.TokenID{}) {
		return entry, fmt.Errorf("entry %s of %s is no claim", message.ID, e.keys[bucket].stream)
	}
	rest := head[3][len(promotion.TokenID{}):]
	at, app, _ := strings.Cut(rest, " ")
	numbers := make([]int64, 6)
	for i, digits := range []string{ms, no, head[0], head[1], head[2], at} {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return entry, fmt.Errorf("entry %s of %s: %w", message.ID, e.keys[bucket].stream, err)
		}
		numbers[i] = n
	}
	entry.ask = promotion.Ask{
		ClaimID: numbers[2], UserID: numbers[3], Quantity: numbers[4], TokenID: promotion.TokenID([]byte(head[3])[:16]),
		App: app, At: time.UnixMilli(numbers[5]).UTC(),
		Source: &promotion.Source{Epoch: e.Epoch.Epoch, Bucket: bucket, StreamMS: numbers[0], StreamNo: numbers[1]},
	}
	return entry, nil
}

// tokenEntry is what a bucket keeps of the claim that a token made; the claim script writes and reads the same.
func tokenEntry(c promotion.Claim) string {
	return fmt.Sprintf("%d %d %d", c.ClaimID, c.UserID, c.Quantity)
}

// wentBack is the field by which a bucket knows that it has taken a claim off its person's count; the script that lowers counts
// writes the same.
func wentBack(c promotion.Claim) string { return "returned claim " + strconv.FormatInt(c.ClaimID, 10) }

// streamTime is when Redis added an entry; the zero time where its id can't be read.
func streamTime(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}
