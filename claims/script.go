package claims

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts so
	_ "embed"
	"encoding/hex"
)

// script is a Lua script. Each works on the keys of one bucket, which lie in one slot of a cluster, and may run twice: a second
// run of the same call changes nothing.
type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // Redis names scripts so
	return &script{text, hex.EncodeToString(sum[:])}
}

var (
	//go:embed lua/claim.lua
	claimText string
	//go:embed lua/open.lua
	openText string
	//go:embed lua/lease.lua
	leaseText string
	//go:embed lua/mark.lua
	markText string
	//go:embed lua/lower.lua
	lowerText string
	//go:embed lua/close.lua
	closeText string

	claimScript = newScript(claimText)
	openScript  = newScript(openText)
	leaseScript = newScript(leaseText)
	markScript  = newScript(markText)
	lowerScript = newScript(lowerText)
	closeScript = newScript(closeText)
)

// Script is the text of the script that takes a claim, and its SHA-1 in hex, by which Redis knows it once it is loaded: for those
// who measure it by itself. Its keys and arguments are told in it.
func Script() (text, sha string) { return claimScript.text, claimScript.sha }
