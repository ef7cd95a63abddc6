package executor

import "context"

// hooks is an observer of those of its functions that are set.
type hooks struct {
	NopObserver
	begun    func(ctx context.Context, recorded bool) error
	leading  func()
	boundary func()
	paused   func() (resumed func())
	closing  func()
}

func (h *hooks) Begun(ctx context.Context, recorded bool) error {
	if h.begun == nil {
		return nil
	}
	return h.begun(ctx, recorded)
}

func (h *hooks) Leading(context.Context)  { call(h.leading) }
func (h *hooks) Boundary(context.Context) { call(h.boundary) }
func (h *hooks) Closing(context.Context)  { call(h.closing) }

func (h *hooks) Paused(context.Context) (resumed func(over bool)) {
	if h.paused == nil {
		return func(bool) {}
	}
	f := h.paused()
	return func(bool) { f() }
}

func call(f func()) {
	if f != nil {
		f()
	}
}
