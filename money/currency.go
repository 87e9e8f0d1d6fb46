package money

import (
	"fmt"
	"slices"
	"strings"
)

// Currency is an ISO 4217 code, three upper-case letters, that this package knows.
type Currency string

// ParseCurrency refuses what is no such code, also in lower case: a code that was mended is a
// code that was guessed.
func ParseCurrency(code string) (Currency, error) {
	c := Currency(code)
	if _, err := c.Exponent(); err != nil {
		return "", err
	}
	return c, nil
}

// Exponent is how many decimals the currency has: its minor unit is one unit divided by ten to
// this power.
func (c Currency) Exponent() (int, error) {
	e, ok := exponents[c]
	if !ok {
		return 0, fmt.Errorf("%w: %.12q, want an active code of ISO 4217 with a minor unit", ErrCurrency, string(c))
	}
	return e, nil
}

// Currencies lists all that are known, by code.
func Currencies() []Currency {
	all := make([]Currency, 0, len(exponents))
	for c := range exponents {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}

// exponents is ISO 4217, list one (current currency and funds codes), as its maintenance
// agency, SIX Group, published it on 2024-06-25, with the changes since: XCG for ANG
// (2025-03-31), CUC withdrawn and XAD added (2025), BGN withdrawn in favour of EUR
// (2026-01-01). Codes that the list marks as funds (BOV, CHE, CHW, CLF, COU, MXV, USN, UYI),
// metals, units of account and test codes are left out: nobody pays with them.
var exponents = table(map[int]string{
	0: `BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF`,
	2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY
		COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF
		IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR
		MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG
		SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES
		WST XAD XCD XCG YER ZAR ZMW ZWG`,
	3: `BHD IQD JOD KWD LYD OMR TND`,
	4: `UYW`,
})

func table(by map[int]string) map[Currency]int {
	all := map[Currency]int{}
	for exponent, codes := range by {
		for _, code := range strings.Fields(codes) {
			all[Currency(code)] = exponent
		}
	}
	return all
}
