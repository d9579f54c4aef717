package cabinet_test

import (
	"testing"

	"doortab/cabinet"
)

func TestItems(t *testing.T) {
	t.Parallel()
	runJudge(t, cabinet.KindSale, map[string]judgeCase{
		"none":             {items: "none", want: ``},
		"sure":             {items: "1x1 2x3@0.95", want: `1x1 cabinet_count, 2x3 cabinet_count`},
		"at the threshold": {items: "1x1@0.8", want: `1x1 cabinet_count`},
		"below it":         {items: "1x1@0.79 2x1", want: `2x1 cabinet_count, ?1x1, !low_confidence/count_below_threshold`},
		"a product the catalogue doesn't have": {
			items: "7x1 2x1",
			want:  `2x1 cabinet_count, !unknown_product/product_not_in_catalogue`,
		},
		"agree with the scale": {items: "2x2@0.9", weights: "2:3450>2760", want: `2x2 unit_weights`},
		"one more than the scale": {
			items: "2x3@0.9", weights: "2:3450>2760",
			want: `2x2 unit_weights, ?2x1, !evidence_disagrees/witnesses_disagree`,
		},
		"one fewer than the scale": {
			items: "2x1@0.9", weights: "2:3450>2760",
			want: `2x1 unit_weights, ?2x1, !evidence_disagrees/witnesses_disagree`,
		},
		"too unsure to deny": {items: "2x1@0.5", weights: "2:3450>2760", want: `2x2 unit_weights`},
		"nothing counted, the scale saw one": {
			items: "none", weights: "2:3450>3105",
			want: `?2x1, !evidence_disagrees/witnesses_disagree`,
		},
		"counted, the scale saw nothing": {
			items: "2x1@0.9", weights: "2:3450>3450",
			want: `?2x1, !evidence_disagrees/witnesses_disagree`,
		},
		"counted, no scale could see it": {items: "10x1@0.9", weights: "2:3450>3450", want: `10x1 cabinet_count`},
		"unsure, no scale could see it": {
			items: "10x1@0.5", weights: "2:3450>3450",
			want: `?10x1, !low_confidence/count_below_threshold`,
		},
		"another product than the tag names": {
			items: "4x1@0.9", tags: "2.1 4.1 > 4.1",
			want: `?2x1, ?4x1, !evidence_disagrees/witnesses_disagree`,
		},
		"three witnesses agree": {items: "2x1@0.9", tags: "2.1 2.2 > 2.2", weights: "2:690>345", want: `2x1 tags_and_scale`},
		"it names the one of two alike": {
			items: "2x1@0.9", weights: "2:3450>3105 4:3500>3150 5:9000>9347",
			want: `2x1 unit_weights, !misplaced_return/netted, ~5.4.350`,
		},
		"it names the other": {
			items: "4x1@0.9", weights: "2:3450>3105 4:3500>3150 5:9000>9347",
			want: `4x1 unit_weights, !misplaced_return/netted, ~5.2.345`,
		},
		"it backs a proposal":                   {items: "2x1@0.9", weights: "2:3450>3270", want: `?2x1, !unexplained_weight/no_whole_units`},
		"many entries of one product, as added": {items: "1x1500", want: `1x1500 cabinet_count`},
	})
}

func TestRestockDoors(t *testing.T) {
	t.Parallel()
	runJudge(t, cabinet.KindRestock, map[string]judgeCase{
		"nothing":                              {weights: "2:345>345", want: ``},
		"weighed in":                           {weights: "1:0>4000 2:345>3450", want: `1x8 unit_weights, 2x9 unit_weights`},
		"ten units, three times the tolerance": {weights: "2:0>3468", want: `2x10 unit_weights`},
		"tags book themselves in":              {tags: "2.1 > 2.1 2.2u 2.3u", want: `2x2 tags`},
		"tags and scale":                       {tags: "2.1 > 2.1 2.2u 2.3u", weights: "2:345>1035", want: `2x2 tags_and_scale`},
		"a lost tag is found":                  {tags: "> 2.1l", want: `2x1 tags`},
		"a tag that is booked already":         {tags: "> 2.1 2.2u", want: `2x1 tags`},
		"a tag from another cabinet":           {tags: "> 2.1e", want: `?2x1, !epc_elsewhere/tag_not_expected_here`},
		"a sold tag comes back":                {tags: "> 2.1s", want: `?2x1, !epc_already_sold/tag_not_expected_here`},
		"a tag of no standard":                 {tags: "> XB 2.1u", want: `2x1 tags, !unknown_epc/tag_without_product`},
		"a tag left":                           {tags: "2.1 > 2.2u", want: `2x1 tags, !evidence_disagrees/units_left_at_a_restock`},
		"a unit left":                          {weights: "2:690>345 1:0>500", want: `1x1 unit_weights, !unexplained_weight/units_left_at_a_restock`},
		"more weight than tags":                {tags: "> 2.1u 2.2u", weights: "2:0>1035", want: `2x3 scale_counts`},
		"more tags than weight": {
			tags: "> 2.1u 2.2u", weights: "2:0>345",
			want: `2x1 tags_and_scale, ?2x1, !evidence_disagrees/tag_gone_weight_unchanged`,
		},
		"tidied up":                    {weights: "3:1700>1200 1:0>2500", strays: strayOf1, want: `1x4 stray`},
		"tidied up though nobody knew": {weights: "3:1700>1200 1:0>2500", want: `1x4 netted`},
		"something foreign was taken away": {
			weights: "3:1430>1200 1:0>2500", strays: []cabinet.Stray{{Lane: 3, Grams: 230}},
			want: `1x5 unit_weights`,
		},
		"left lying":                         {weights: "3:620>1100 1:0>2500", strays: strayOf1, want: `1x5 unit_weights, 3x4 unit_weights`},
		"counted by the cabinet":             {items: "1x10 2x8", want: `1x10 cabinet_count, 2x8 cabinet_count`},
		"counted and weighed":                {items: "1x5", weights: "1:0>2500", want: `1x5 unit_weights`},
		"late: what was sold and lost since": {tags: "> 2.1S 2.2L 2.3u", weights: "2:0>1035", want: `2x3 tags_and_scale`},
		"late: elsewhere since":              {tags: "> 2.1E", want: `?2x1, !epc_elsewhere/tag_not_expected_here`},
		"late: booked by a later door":       {tags: "> 2.1H 2.2u", want: `2x1 tags`},
		"late: still there, sold since":      {tags: "2.1S > 2.1S 2.2u", want: `2x1 tags`},
		"late: carried out and seen since":   {tags: "2.1H > ", want: `!evidence_disagrees/units_left_at_a_restock`},
		"something unknown was put in":       {weights: "2:345>875", want: `?2x2, !unexplained_weight/no_whole_units`},
	})
}
