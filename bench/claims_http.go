package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"doortab/admin"
	"doortab/promotion"
	"doortab/settlement"
)

// httpCounter is a counter behind HTTP, and the shoppers' apps in front of it: for Doortab the REST API that `doortab serve`
// has, for the usual design a handler that does nothing but claim.
type httpCounter struct {
	url, token string
	client     *http.Client
	stop       context.CancelFunc
	served     chan struct{} // closed once it serves no more
}

func (c *counter) serve(l *Lab) (*httpCounter, error) {
	ctx, stop := context.WithCancel(context.Background())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		stop()
		return nil, fmt.Errorf("listen for claims: %w", err)
	}
	token, err := admin.CreateToken(ctx, c.db, claimsApp, admin.App)
	if err != nil {
		stop()
		return nil, errors.Join(err, listener.Close())
	}
	api := admin.New(admin.Config{
		DB: c.db, Settlement: settlement.New(settlement.Config{DB: c.db, Currency: currency, Logger: l.log}), Claims: c.service,
		Currency: currency, Logger: l.log,
	}).Handler()
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("POST /usual/{promotion}/{user}", c.claimUsual)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	h := &httpCounter{
		url: "http://" + listener.Addr().String(), token: token.Secret, stop: stop, served: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: pressers, MaxConnsPerHost: pressers}},
	}
	go func() {
		defer close(h.served)
		_ = server.Serve(listener) // until it is closed; a failure shows in the presses
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return h, nil
}

func (h *httpCounter) close() {
	h.client.CloseIdleConnections()
	h.stop()
	<-h.served
}

func (c *counter) claimUsual(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.ParseInt(r.PathValue("promotion"), 10, 64)
	user, _ := strconv.ParseInt(r.PathValue("user"), 10, 64)
	switch got, err := whetherUsual(c.design.Claim(r.Context(), id, user)); {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case got:
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusConflict)
	}
}

// press is one press in an app: a token, then the claim with it, polled for where it answers 202.
func (h *httpCounter) press(ctx context.Context, way promotion.Way, id, user int64) (got bool, err error) {
	if way == theUsual {
		status, _, err := h.post(ctx, fmt.Sprintf("/usual/%d/%d", id, user), nil, nil)
		return answered(status, err)
	}
	number := settlement.FormatID(id)
	var order struct{ Token string }
	status, _, err := h.post(ctx, "/v1/order-tokens", map[string]any{"userId": user, "promotionId": number}, &order)
	if err != nil || status != http.StatusCreated {
		return false, errors.Join(err, refusal(status))
	}
	status, location, err := h.post(ctx, "/v1/promotions/"+number+"/claims",
		map[string]any{"token": order.Token, "userId": user, "quantity": 1}, nil)
	for err == nil && status == http.StatusAccepted {
		status, _, err = h.call(ctx, http.MethodGet, location, nil, nil)
	}
	return answered(status, err)
}

// answered tells a claim from a refusal.
func answered(status int, err error) (got bool, _ error) {
	if status == http.StatusConflict {
		return false, err
	}
	return err == nil, errors.Join(err, refusal(status))
}

func refusal(status int) error {
	if status >= http.StatusMultipleChoices {
		return fmt.Errorf("a press was answered with status %d", status)
	}
	return nil
}

func (h *httpCounter) post(ctx context.Context, path string, body, answer any) (status int, location string, err error) {
	return h.call(ctx, http.MethodPost, path, body, answer)
}

func (h *httpCounter) call(ctx context.Context, method, path string, body, answer any) (status int, location string, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequestWithContext(ctx, method, h.url+path, bytes.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+h.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := h.client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("press over HTTP: %w", err)
	}
	defer response.Body.Close()
	if answer != nil && response.StatusCode < http.StatusMultipleChoices {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	_, drained := io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header.Get("Location"), errors.Join(err, drained)
}
