package psp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/pacht-queue/pacht/money"
)

// SetScenario says what is to happen to a reference, of a payment or a refund, from now on.
func (c *Client) SetScenario(ctx context.Context, reference string, s Scenario) error {
	return c.tell(ctx, http.MethodPut, "/simulator/scenarios/"+url.PathEscape(reference), s, http.StatusNoContent, nil)
}

// SetWebhook says where events go from now on.
func (c *Client) SetWebhook(ctx context.Context, w Webhook) error {
	return c.tell(ctx, http.MethodPut, "/simulator/webhook", w, http.StatusNoContent, nil)
}

// DashboardRefund gives money of a charge back as a person at the provider's side does.
func (c *Client) DashboardRefund(ctx context.Context, charge string, amount money.Amount) (Refund, error) {
	var refund Refund
	return refund, c.tell(ctx, http.MethodPost, "/simulator/refunds", atProvider{charge, amount}, http.StatusOK, &refund)
}

// Chargeback takes back what is left of a charge, as the payer's bank does.
func (c *Client) Chargeback(ctx context.Context, charge string) error {
	return c.tell(ctx, http.MethodPost, "/simulator/chargebacks", map[string]string{"charge": charge}, http.StatusNoContent, nil)
}

// ChargebackPart takes back a part of a charge, whatever of it was refunded: banks do not ask.
func (c *Client) ChargebackPart(ctx context.Context, charge string, part money.Amount) error {
	return c.tell(ctx, http.MethodPost, "/simulator/chargebacks", atProvider{charge, part}, http.StatusNoContent, nil)
}

// Release lets answers go out that Config.HoldAnswers holds back.
func (c *Client) Release(ctx context.Context) error {
	return c.tell(ctx, http.MethodPost, "/simulator/release", nil, http.StatusNoContent, nil)
}

func (c *Client) tell(ctx context.Context, method, path string, what any, want int, into any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return c.do(req, want, into)
}
