package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"doortab/cabinet"
)

const maxHookBody = 64 << 10 // an MQTT user name, client id or topic has at most 65,535 bytes, and none of ours comes near

// brokerSecret stands where a route is neither for a role nor open: the broker's shared secret admits to it.
const brokerSecret Role = "broker"

// BrokerHooks let an external broker ask whether a client may connect, publish and subscribe, in the form of EMQX 5's HTTP
// authentication and authorization.
type BrokerHooks struct {
	// Secret is what the broker sends as Authorization: Bearer <secret>; with "" there are no hooks.
	Secret string
	// Username and Password are the account of Doortab's own workers; with "" it has none.
	Username, Password string
	// Authenticate checks a cabinet's secret, see [fleet.Authenticator].
	Authenticate func(username string, password []byte) (token string, ok bool)
}

// connectQuestion and topicQuestion are the bodies that the broker's templates make; further members are ignored.
type connectQuestion struct {
	Username string `json:"username"`
	Password string `json:"password"`
	ClientID string `json:"clientid"`
}

type topicQuestion struct {
	Username string `json:"username"`
	ClientID string `json:"clientid"`
	Topic    string `json:"topic"`
	Action   string `json:"action"`
}

// verdict is the answer. It never says "ignore": what Doortab doesn't know, it denies, since a broker that finds nobody to
// decide may allow it.
type verdict struct {
	Result      string `json:"result"`
	IsSuperuser bool   `json:"is_superuser"`
}

func (s *Server) brokerRoutes(hooks BrokerHooks) {
	s.hook("/mqtt/auth", hooks, hooks.mayConnect)
	s.hook("/mqtt/acl", hooks, hooks.mayUse)
}

func (s *Server) hook(path string, hooks BrokerHooks, judge func(echo.Context) (bool, error)) {
	s.note(registered{http.MethodPost, path, access{least: brokerSecret}})
	s.echo.POST(path, func(c echo.Context) error {
		if err := hooks.admit(c.Request().Header.Get("Authorization")); err != nil {
			return err
		}
		allowed, err := judge(c)
		if err != nil {
			s.log.Warn("A broker's question can't be read and is denied.", "path", path, "error", err)
		}
		answer := verdict{Result: "deny"}
		if allowed && err == nil {
			answer.Result = "allow"
		}
		return c.JSON(http.StatusOK, answer)
	})
}

func (h BrokerHooks) admit(authorization string) error {
	if h.Secret == "" {
		return errMissingPath
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || !same(secret, h.Secret) {
		return errNoBrokerSecret
	}
	return nil
}

// same takes the same time wherever two secrets differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func read(c echo.Context, into any) error {
	return json.NewDecoder(http.MaxBytesReader(c.Response(), c.Request().Body, maxHookBody)).Decode(into)
}

// mayConnect lets a cabinet in under its own number alone, so that it can't take a worker's client id. A worker may take any:
// that is how it ends a cabinet's connection.
func (h BrokerHooks) mayConnect(c echo.Context) (bool, error) {
	var q connectQuestion
	if err := read(c, &q); err != nil {
		return false, err
	}
	if h.isWorker(q.Username) {
		return same(q.Password, h.Password) && q.ClientID != "", nil
	}
	if _, ok := cabinet.ParseDeviceID(q.Username); !ok || q.ClientID != q.Username {
		return false, nil
	}
	_, ok := h.Authenticate(q.Username, []byte(q.Password))
	return ok, nil
}

func (h BrokerHooks) mayUse(c echo.Context) (bool, error) {
	var q topicQuestion
	if err := read(c, &q); err != nil {
		return false, err
	}
	deviceID, isCabinet := cabinet.ParseDeviceID(q.Username)
	switch {
	case h.isWorker(q.Username) && q.Action == "publish":
		return cabinet.WorkerMayPublish(q.Topic), nil
	case h.isWorker(q.Username) && q.Action == "subscribe":
		return cabinet.WorkerMaySubscribe(q.Topic), nil
	case isCabinet && q.ClientID == q.Username && q.Action == "publish":
		return cabinet.MayPublish(deviceID, q.Topic), nil
	case isCabinet && q.ClientID == q.Username && q.Action == "subscribe":
		return cabinet.MaySubscribe(deviceID, q.Topic), nil
	default:
		return false, nil
	}
}

// isWorker: an account without a password would let everybody in who knows its name.
func (h BrokerHooks) isWorker(username string) bool {
	return username != "" && username == h.Username && h.Password != ""
}
