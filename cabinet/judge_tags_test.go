package cabinet_test

import (
	"testing"

	"doortab/cabinet"
)

func TestTagsAlone(t *testing.T) {
	t.Parallel()
	runJudge(t, cabinet.KindSale, map[string]judgeCase{
		"none":                                   {tags: ">", want: ``},
		"all stayed":                             {tags: "1.1 2.1 > 1.1 2.1", want: ``},
		"one gone":                               {tags: "1.1 2.1 > 1.1", want: `2x1 tags`},
		"two of one product, one of another":     {tags: "1.1 2.1 2.2 > ", want: `1x1 tags, 2x2 tags`},
		"an override names the product":          {tags: "XA > ", want: `2x1 tags`},
		"no standard, no override":               {tags: "XB > ", want: `!unknown_epc/tag_without_product`},
		"no standard but stayed":                 {tags: "XB > XB", want: ``},
		"no standard and came":                   {tags: "> XC", want: `!unknown_epc/tag_without_product`},
		"a product the catalogue doesn't have":   {tags: "77.1 > ", want: `!unknown_product/product_not_in_catalogue`},
		"a tag the books don't have":             {tags: "2.1u 2.2 > ", want: `2x1 tags, ?2x1, !epc_not_in_cabinet/tag_not_expected_here`},
		"a tag the books have elsewhere":         {tags: "2.1e > ", want: `?2x1, !epc_elsewhere/tag_not_expected_here`},
		"a tag that was sold before":             {tags: "2.1s > ", want: `?2x1, !epc_already_sold/tag_not_expected_here`},
		"a tag that was lost":                    {tags: "2.1l > ", want: `?2x1, !epc_not_in_cabinet/tag_not_expected_here`},
		"a sold tag is back":                     {tags: "> 2.1s", want: `!epc_already_sold/sold_tag_is_back`},
		"a sold tag was never gone":              {tags: "2.1s 2.2 > 2.1s", want: `2x1 tags, !epc_already_sold/sold_tag_is_back`},
		"a tag that only the first reads missed": {tags: "2.2 > 2.1 2.2", want: ``},
		"a tag from elsewhere came":              {tags: "> 2.1e", want: `!epc_elsewhere/tag_not_expected_here`},
		"an unknown tag came":                    {tags: "> 2.1u", want: `!epc_not_in_cabinet/tag_not_expected_here`},
		"a tag that stayed though unknown":       {tags: "2.1u > 2.1u", want: ``},
		"a product that no lane holds":           {tags: "10.1 > ", want: `10x1 tags`},

		"late: still there, sold, lost and elsewhere since": {tags: "2.1S 2.2L 2.3E 2.4 > 2.1S 2.2L 2.3E", want: `2x1 tags`},
		"late: seen only after the door, sold since":        {tags: "> 2.1S", want: ``},
		"late: seen only after the door, lost since":        {tags: "> 2.1L", want: ``},
		"late: seen only after the door, elsewhere since":   {tags: "> 2.1E", want: ``},
		"late: gone, and sold since":                        {tags: "2.1S > ", want: `?2x1, !epc_already_sold/tag_not_expected_here`},
		"late: gone, and lost since":                        {tags: "2.1L > ", want: `?2x1, !epc_not_in_cabinet/tag_not_expected_here`},
		"late: gone, and elsewhere since":                   {tags: "2.1E > ", want: `?2x1, !epc_elsewhere/tag_not_expected_here`},
		"late: gone, and seen here since":                   {tags: "2.1H 2.2 > ", want: `2x1 tags, ?2x1, !evidence_disagrees/later_door_saw_the_tag`},
	})
}

func TestTagsAndScales(t *testing.T) {
	t.Parallel()
	runJudge(t, cabinet.KindSale, map[string]judgeCase{
		"agree": {weights: "2:690>345", tags: "2.1 2.2 > 2.2", want: `2x1 tags_and_scale`},
		"agree on two products": {
			weights: "1:1000>0 2:690>345", tags: "1.1 1.2 2.1 2.2 > 2.2",
			want: `1x2 tags_and_scale, 2x1 tags_and_scale`,
		},
		"agree on two lanes": {weights: "2:690>345 8:690>345", tags: "2.1 2.2 2.3 2.4 > 2.2 2.4", want: `2x2 tags_and_scale`},
		"a tag gone, the weight unchanged": {
			weights: "2:690>690", tags: "2.1 2.2 > 2.2",
			want: `?2x1, !evidence_disagrees/tag_gone_weight_unchanged`,
		},
		"two tags gone, the weight of one": {
			weights: "2:690>345", tags: "2.1 2.2 > ",
			want: `2x1 tags_and_scale, ?2x1, !evidence_disagrees/tag_gone_weight_unchanged`,
		},
		"weight gone, the tags all read": {
			weights: "2:690>345", tags: "2.1 2.2 > 2.1 2.2",
			want: `?2x1, !evidence_disagrees/weight_gone_tags_read`,
		},
		"weight gone of two, tag of one, all read": {
			weights: "2:1035>345", tags: "2.1 2.2 2.3 > 2.2 2.3",
			want: `2x1 scale_counts, ?2x1, !evidence_disagrees/weight_gone_tags_read`,
		},
		"a unit whose tag was never read":   {weights: "2:1035>690", tags: "2.1 2.2 > 2.1 2.2", want: `2x1 unit_weights`},
		"one read, one not":                 {weights: "2:690>0", tags: "2.1 > ", want: `2x2 scale_counts`},
		"a product without tags":            {weights: "1:5000>4500 2:690>690", tags: "2.1 2.2 > 2.1 2.2", want: `1x1 unit_weights`},
		"no scale under its lane":           {weights: "1:5000>5000", tags: "2.1 2.2 > 2.1", want: `2x1 tags`},
		"a product that no lane holds":      {weights: "1:5000>5000", tags: "10.1 > ", want: `10x1 tags`},
		"no unit weight, but its lane lost": {weights: "6:900>400", tags: "6.1 6.2 > 6.2", want: `6x1 tags`},
		"no unit weight and no tag": {
			weights: "6:900>400", tags: "6.1 6.2 > 6.1 6.2",
			want: `!unexplained_weight/product_without_unit_weight`,
		},
		"put back in the wrong lane": {weights: "1:500>0 3:1200>1700", tags: "1.1 > 1.1", want: `!misplaced_return/netted, ~3.1.500`},
		"taken from the wrong lane":  {weights: "1:500>500 3:1700>1200", tags: "1.1 1.2 > 1.2", want: `1x1 tags_and_scale`},
		"the neighbour alike was put in its place": {
			weights: "2:690>345 4:700>695", tags: "2.1 2.2 4.1 4.2 > 2.1 2.2 4.2",
			want: `4x1 tags_and_scale`,
		},
		"swapped for something of like weight": {
			weights: "4:700>698", tags: "4.1 4.2 > 4.2",
			want: `?4x1, !evidence_disagrees/tag_gone_weight_unchanged`,
		},
		"half empty":               {weights: "2:690>520", tags: "2.1 2.2 > 2.1 2.2", want: `?2x1, !unexplained_weight/no_whole_units`},
		"half empty beside a unit": {weights: "2:690>180", tags: "2.1 2.2 > 2.2", want: `?2x2, !unexplained_weight/no_whole_units`},
		"something foreign beside a sale": {
			weights: "1:1000>1230 2:690>345", tags: "1.1 1.2 2.1 2.2 > 1.1 1.2 2.2",
			want: `2x1 tags_and_scale, !foreign_object/gain_without_loss, ~1.0.230`,
		},
		"something foreign in the lane of the sale": {
			weights: "2:690>575", tags: "2.1 2.2 > 2.2",
			want: `?2x1, !unexplained_weight/no_whole_units, ~2.0.230`,
		},
		"a sold unit is brought back": {
			weights: "2:690>1035", tags: "2.1 2.2 > 2.1 2.2 2.3s",
			want: `!epc_already_sold/sold_tag_is_back`,
		},
		"a doubtful tag and its weight": {
			weights: "2:690>345", tags: "2.1u 2.2 > 2.2",
			want: `?2x1, !epc_not_in_cabinet/tag_not_expected_here`,
		},
		"a tag of no standard and a unit's weight": {
			weights: "2:690>345", tags: "2.1 XB > 2.1",
			want: `2x1 unit_weights, !unknown_epc/tag_without_product`,
		},
		"half of the tags unreadable before": {weights: "1:2000>1000", tags: "1.1 1.2 > 1.2", want: `1x2 scale_counts`},
		"late: one gone beside one sold since": {
			weights: "2:690>345", tags: "2.1 2.2S > 2.2S",
			want: `2x1 tags_and_scale`,
		},
		"late: missed before the door, sold since": {
			weights: "2:690>345", tags: "2.1 > 2.2S",
			want: `2x1 tags_and_scale`,
		},
		"late: gone by tag and scale, sold since": {
			weights: "2:690>345", tags: "2.1S 2.2 > 2.2",
			want: `?2x1, !epc_already_sold/tag_not_expected_here`,
		},
	})
}
