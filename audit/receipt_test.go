package audit_test

import "testing"

func TestReceipts(t *testing.T) {
	findAll(t, []plant{
		{
			name:    "outcome",
			receipt: [3]string{"short", `"settled"`, `"empty"`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt outcome empty, rows say settled",
			},
		},
		{
			name:    "event",
			receipt: [3]string{"short", `"short"`, `"long"`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt closeEventId long, rows say short",
			},
		},
		{
			name:    "device",
			receipt: [3]string{"short", `1001`, `1002`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt deviceId 1002, rows say 1001",
			},
		},
		{
			name:    "duplicate",
			receipt: [3]string{"short", `"duplicate":false`, `"duplicate":true`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt duplicate true, rows say false",
			},
		},
		{
			name:    "order",
			receipt: [3]string{"short", `"102"`, `"103"`},
			want: []string{
				`I5 settlements device=1001 event=short: receipt orderId "103", rows say "102"`,
			},
		},
		{
			name:    "an order where there is none",
			receipt: [3]string{"nothing", `"orderId":null`, `"orderId":"103"`},
			want: []string{
				`I5 settlements device=1001 event=nothing: receipt orderId "103", rows say ""`,
			},
		},
		{
			name:    "an order that came later",
			receipt: [3]string{"accepted", `"orderId":null`, `"orderId":"106"`},
			want: []string{
				`I5 settlements device=1001 event=accepted: receipt orderId "106", rows say ""`,
			},
		},
		{
			name:    "currency",
			receipt: [3]string{"short", `"CNY"`, `"EUR"`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt currency EUR, rows say CNY",
			},
		},
		{
			name:    "total",
			receipt: [3]string{"short", `"totalMinor":900`, `"totalMinor":600`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt totalMinor 600, rows say 900",
			},
		},
		{
			name:    "a line",
			receipt: [3]string{"short", `"quantity":3`, `"quantity":2`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt lines [product 8: 2 x 300 = 900], rows say [product 8: 3 x 300 = 900]",
			},
		},
		{
			name: "a line that is missing",
			receipt: [3]string{
				"two-products", `,{"productId":8,"quantity":1,"unitPriceMinor":300,"amountMinor":300}`, ``,
			},
			want: []string{
				"I5 settlements device=1001 event=two-products: receipt lines [product 7: 2 x 500 = 1000], " +
					"rows say [product 7: 2 x 500 = 1000, product 8: 1 x 300 = 300]",
			},
		},
		{
			name:    "time",
			receipt: [3]string{"short", `21.503Z`, `21.504Z`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt settledAt 2026-11-30T10:00:21.504Z, rows say 2026-11-30T10:00:21.503Z",
			},
		},
		{
			name:    "not a receipt",
			receipt: [3]string{"short", `{`, `[`},
			want: []string{
				"I5 settlements device=1001 event=short: receipt can't be read: invalid character ':' after array element",
			},
		},
	})
}
