package cabinet_test

import (
	"testing"

	"doortab/cabinet"
)

// A unit of product 1 in lane 3, and one of product 2 in the lane of product 4, which weighs nearly as much.
var (
	strayOf1 = []cabinet.Stray{{Lane: 3, ProductID: 1, Grams: 500}}
	strayOf2 = []cabinet.Stray{{Lane: 4, ProductID: 2, Grams: 345}}
)

func TestScalesAlone(t *testing.T) {
	t.Parallel()
	runJudge(t, cabinet.KindSale, map[string]judgeCase{
		"nothing reported":                   {weights: "none", want: ``},
		"nothing changed":                    {weights: "1:5000>5000 2:3450>3450", want: ``},
		"one unit":                           {weights: "2:3450>3105", want: `2x1 unit_weights`},
		"the design's two units":             {weights: "2:5230>4540", want: `2x2 unit_weights`},
		"one unit at the edge":               {weights: "2:3450>3099", want: `2x1 unit_weights`},
		"one unit just beyond the edge":      {weights: "2:3450>3098", want: `?2x1, !unexplained_weight/no_whole_units`},
		"four units, twice the tolerance":    {weights: "2:3450>2058", want: `2x4 unit_weights`},
		"four units beyond it":               {weights: "2:3450>2057", want: `?2x4, !unexplained_weight/no_whole_units`},
		"a change inside the tolerance":      {weights: "2:3450>3444", want: ``},
		"a gain inside the tolerance":        {weights: "2:3450>3456", want: ``},
		"a change beyond it without a unit":  {weights: "2:3450>3443", want: `!unexplained_weight/no_whole_units`},
		"the least default tolerance":        {weights: "3:1200>1075", want: `3x1 unit_weights`},
		"beyond the least default tolerance": {weights: "3:1200>1074", want: `?3x1, !unexplained_weight/no_whole_units`},
		"two per cent by default":            {weights: "5:9000>7980", want: `5x1 unit_weights`},
		"beyond two per cent":                {weights: "5:9000>7979", want: `?5x1, !unexplained_weight/no_whole_units`},
		"all units of a lane":                {weights: "1:5000>0", want: `1x10 unit_weights`},
		"more than the lane weighed":         {weights: "1:400>-100", want: `1x1 unit_weights`},
		"several lanes": {
			weights: "1:5000>4500 2:3450>2760 3:1200>1080",
			want:    `1x1 unit_weights, 2x2 unit_weights, 3x1 unit_weights`,
		},
		"two lanes of one product":           {weights: "2:3450>3105 8:3450>2760", want: `2x3 unit_weights`},
		"moved between lanes of one product": {weights: "2:3450>3105 8:3450>3795", want: ``},
		"a bottle put back half empty":       {weights: "2:3450>3270", want: `?2x1, !unexplained_weight/no_whole_units`},
		"half empty beside a unit":           {weights: "2:3450>2925", want: `?2x2, !unexplained_weight/no_whole_units`},
		"a sip":                              {weights: "2:3450>3420", want: `!unexplained_weight/no_whole_units`},
		"half empty, another lane sound": {
			weights: "1:5000>4500 2:3450>3270",
			want:    `1x1 unit_weights, ?2x1, !unexplained_weight/no_whole_units`,
		},
		"a lane without a planogram entry":     {weights: "9:500>100", want: `!unknown_lane/lane_without_product`},
		"trembling of such a lane":             {weights: "9:500>496", want: ``},
		"a product without a unit weight":      {weights: "6:900>400", want: `!unexplained_weight/product_without_unit_weight`},
		"a product the catalogue doesn't have": {weights: "7:900>400", want: `!unexplained_weight/product_without_unit_weight`},
		"absurdly many units":                  {weights: "3:900000000>0", want: `!unexplained_weight/no_whole_units`},
	})
}

func TestThingsThatChangeTheirLane(t *testing.T) {
	t.Parallel()
	runJudge(t, cabinet.KindSale, map[string]judgeCase{
		"put back in the wrong lane": {weights: "1:5000>4500 3:1200>1700", want: `!misplaced_return/netted, ~3.1.500`},
		"within the tolerance":       {weights: "1:5000>4497 3:1200>1709", want: `!misplaced_return/netted, ~3.1.503`},
		"beyond it":                  {weights: "1:5000>4500 3:1200>1720", want: `1x1 unit_weights, !foreign_object/gain_without_loss, ~3.0.520`},
		"two taken, one put in the wrong lane": {
			weights: "1:5000>4000 3:1200>1700",
			want:    `1x1 netted, !misplaced_return/netted, ~3.1.500`,
		},
		"two taken, both put in the wrong lane": {
			weights: "1:5000>4000 3:1200>2200",
			want:    `!misplaced_return/netted, ~3.1.500, ~3.1.500`,
		},
		"one in each of two wrong lanes": {
			weights: "1:5000>4000 3:1200>1700 5:9000>9500",
			want:    `!misplaced_return/netted, ~3.1.500, ~5.1.500`,
		},
		"one from each of two lanes": {
			weights: "1:5000>4500 2:3450>3105 3:1200>1700 5:9000>9345",
			want:    `!misplaced_return/netted, ~3.1.500, ~5.2.345`,
		},
		"another product taken beside it": {
			weights: "1:5000>4500 2:3450>3105 3:1200>1700",
			want:    `2x1 unit_weights, !misplaced_return/netted, ~3.1.500`,
		},
		"either of two alike may be the one": {
			weights: "2:3450>3105 4:3500>3150 5:9000>9347",
			want:    `?4x1, !unexplained_weight/several_explanations, ~5.2.345?, ~5.4.350?`,
		},
		"one of two alike fits better, not by much": {
			weights: "2:3450>3105 4:3500>3150 5:9000>9345",
			want:    `?4x1, !unexplained_weight/several_explanations, ~5.2.345?, ~5.4.350?`,
		},
		"put in a lane whose own unit was taken": {
			weights: "1:5000>4500 5:9000>8500",
			want:    `?5x1, !unexplained_weight/several_explanations, ~5.1.500?`,
		},
		"put in a lane without a planogram entry": {weights: "1:5000>4500 9:0>500", want: `!misplaced_return/netted, ~9.1.500`},
		"put where nothing has a unit weight":     {weights: "1:5000>4500 6:700>1200", want: `!misplaced_return/netted, ~6.1.500`},
		"something foreign":                       {weights: "1:5000>5230", want: `!foreign_object/gain_without_loss, ~1.0.230`},
		"something foreign and a sale": {
			weights: "1:5000>5230 2:3450>3105",
			want:    `2x1 unit_weights, !foreign_object/gain_without_loss, ~1.0.230`,
		},
		"something foreign in the lane of a sale": {weights: "2:3450>3205", want: `?2x1, !unexplained_weight/no_whole_units`},
		"a unit brought from outside":             {weights: "1:5000>5500", want: `!foreign_object/gain_without_loss, ~1.0.500`},
		"something foreign like what was taken":   {weights: "1:5000>4500 3:1200>1697", want: `!misplaced_return/netted, ~3.1.500`},
		"too little gained to be what was taken": {
			weights: "1:5000>4500 3:1200>1650",
			want:    `1x1 unit_weights, !foreign_object/gain_without_loss, ~3.0.450`,
		},
		"swapped for something of like weight":   {weights: "2:3450>3448", want: ``},
		"taken and brought back: nothing":        {weights: "2:3450>3451 4:3500>3499", want: ``},
		"a lane that lost what it gained before": {weights: "3:1700>1200", strays: strayOf1, want: `1x1 stray`},
		"and its own unit too":                   {weights: "3:1700>1080", strays: strayOf1, want: `1x1 stray, 3x1 unit_weights`},
		"brought home":                           {weights: "3:1700>1200 1:4500>5000", strays: strayOf1, want: ``},
		"brought home though nobody knew":        {weights: "3:1700>1200 1:4500>5000", want: ``},
		"taken though nobody knew":               {weights: "3:1700>1200 1:5000>5000", want: `?1x1, !unexplained_weight/no_whole_units`},
		"a unit alike lies there: either": {
			weights: "4:3845>3497", strays: strayOf2,
			want: `?4x1, !unexplained_weight/several_explanations, ~4.2.345`,
		},
		"both were taken": {
			weights: "4:3845>3150", strays: strayOf2,
			want: `4x1 unit_weights, ?2x1, !unexplained_weight/several_explanations, ~4.2.345`,
		},
		"the own unit, clearly": {weights: "4:3845>3488", strays: strayOf2, want: `4x1 unit_weights, ~4.2.345`},
		"something foreign was taken away": {
			weights: "4:3730>3500", strays: []cabinet.Stray{{Lane: 4, Grams: 230}},
			want: `!unexplained_weight/stray`,
		},
		"many small units that are one large thing": {
			weights: "3:1500>780 10:9000>9000",
			want:    `?3x6, !unexplained_weight/several_explanations`,
		},
		"a lane known to hold strays is only touched": {weights: "4:3845>3844", strays: strayOf2, want: `~4.2.345`},
		"the whole cabinet was pushed": {
			weights: "1:5000>4870 2:3450>3300 3:1200>1150 4:3500>3360 5:9000>8600 8:3450>3310 9:0>40 6:1>99",
			want: `?1x1, ?2x2, ?3x1, ?4x1, ?5x1, !unexplained_weight/no_whole_units, ` +
				`!unexplained_weight/product_without_unit_weight, !unknown_lane/lane_without_product, ~6.0.98, ~9.0.40`,
		},
		"an exchange of two alike that trembling can't hide": {
			weights: "1:5000>5001 2:3450>3105 3:1200>1199 4:3500>3492 5:9000>9001 8:3450>3449",
			want:    `?2x1, !unexplained_weight/several_explanations`,
		},
	})
}
