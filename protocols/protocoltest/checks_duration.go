package protocoltest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"linktrial/protocols/contract"
)

// needDuration skips a check of transfers that a time bounds for a driver that
// does not have them.
func (s *suite) needDuration() error {
	if s.target.Manifest.Has(contract.FeatureDuration) {
		return nil
	}
	return skip("the manifest does not declare the feature %s", contract.FeatureDuration)
}

// durationMS is how long a transfer of the checks is: long enough that it is
// nothing beside the suite's patience, and not the other way round.
const durationMS = 500

func checkDuration(ctx context.Context, s *suite) (string, error) {
	if err := s.needDuration(); err != nil {
		return "", err
	}
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	bounded := func(most, ms int64) (*contract.Result, error) {
		p := s.clientParams(sp.Local.Port, most)
		p.Transfer.DurationMS = ms
		// What was under way when the time was up has the suite's patience to arrive.
		p.Limits.TransferMS = durationMS + s.o.Patience.Milliseconds()
		c, err := s.begin(p)
		if err != nil {
			return nil, err
		}
		r, err := s.wellDone(ctx, srv, c, p)
		if err != nil {
			return nil, err
		}
		for _, d := range []*proc{c, srv} {
			if _, err := sampled(d, p.Transfer.ID, time.Duration(p.SampleIntervalMS)*time.Millisecond); err != nil {
				return nil, err
			}
		}
		return r, nil
	}
	r, err := bounded(endless, durationMS)
	if err != nil {
		return "", fmt.Errorf("bounded by %d ms: %w", durationMS, err)
	}
	const bound = durationMS * time.Millisecond
	if elapsed := time.Duration(r.ElapsedNS); elapsed < bound {
		return "", fmt.Errorf("a transfer bounded by %s was over after %s, and had not come to its size", bound, elapsed)
	}
	if r.SizeBytes == 0 {
		return "", fmt.Errorf("nothing was sent in %s", bound)
	}
	// The size comes first: a whole chunk, parts of one, none.
	for _, most := range []int64{drawSize(mib), 1, 0} {
		small, err := bounded(most, time.Hour.Milliseconds())
		if err != nil {
			return "", fmt.Errorf("bounded by an hour, %d bytes at most: %w", most, err)
		}
		if small.SizeBytes != most {
			return "", fmt.Errorf("bounded by an hour, %d bytes at most: %d were sent", most, small.SizeBytes)
		}
	}
	return fmt.Sprintf("%s in %s", rate(r), time.Duration(r.ElapsedNS).Round(time.Millisecond)), nil
}

func checkDurationRefused(ctx context.Context, s *suite) (string, error) {
	if err := s.needDuration(); err != nil {
		return "", err
	}
	for what, ms := range map[string]any{"a negative time": -1, "a time of more than a year": int64(366) * 24 * 3600 * 1000, "half a millisecond": 0.5, "a time as text": "500"} {
		doc, err := withDuration(s.clientParams(s.port(), 1), ms)
		if err != nil {
			return "", err
		}
		if err := s.refused(ctx, what, contract.RoleClient, doc, contract.CodeBadParameters); err != nil {
			return "", err
		}
	}
	return "", nil
}

// withDuration writes a client's document with any value as its time.
func withDuration(p *contract.Parameters, ms any) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		return "", err
	}
	doc["transfer"].(map[string]any)["duration_ms"] = ms
	b, err = json.Marshal(doc)
	return string(b), err
}
