package psp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SignatureHeader carries the signature of a webhook.
const SignatureHeader = "Psp-Signature"

// ErrSignature: a webhook that the provider did not send, or not now.
var ErrSignature = errors.New("bad signature")

// Sign is the signature of a webhook's body that is sent at the given time.
func Sign(secret string, at time.Time, body []byte) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(digest(secret, seconds, body))
}

// Verify checks a signature. One that is older or newer than tolerance is refused, so that a
// webhook that somebody kept cannot be played again for ever.
func Verify(secret, signature string, body []byte, now time.Time, tolerance time.Duration) error {
	stamp, rest, ok := strings.Cut(signature, ",v1=")
	seconds, isStamp := strings.CutPrefix(stamp, "t=")
	if !ok || !isStamp || secret == "" {
		return fmt.Errorf("%w: not of the form t=SECONDS,v1=HEX", ErrSignature)
	}
	sent, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: its time is no number", ErrSignature)
	}
	mac, err := hex.DecodeString(rest)
	if err != nil || !hmac.Equal(mac, digest(secret, seconds, body)) {
		return fmt.Errorf("%w: it does not fit body and secret", ErrSignature)
	}
	if off := now.Sub(time.Unix(sent, 0)).Abs(); off > tolerance {
		return fmt.Errorf("%w: its time is off by %s, allowed are %s", ErrSignature, off.Round(time.Second), tolerance)
	}
	return nil
}

func digest(secret, seconds string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + ".")) // never fails
	mac.Write(body)
	return mac.Sum(nil)
}
