package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"doortab/tasks"
)

type failedTaskView struct {
	ID       string     `json:"id"`
	Kind     tasks.Kind `json:"kind" enum:"door-session,claim,reservation" doc:"What it ends."`
	Subject  string     `json:"subject" doc:"The id of the thing that it ends."`
	DueAt    time.Time  `json:"dueAt" doc:"When the thing's time was over."`
	FailedAt time.Time  `json:"failedAt" doc:"When it failed last."`
	Attempts int        `json:"attempts"`
	Error    string     `json:"error" doc:"Why it failed last."`
}

type failedTaskPath struct {
	ID string `path:"id" maxLength:"255"`
}

type retriedTaskOutput struct {
	Body struct {
		Outcome tasks.Outcome `json:"outcome" enum:"done,later" doc:"later: the thing has time left, and a task for its end."`
	}
}

// failedPlace is tasks.Place as a cursor carries it.
type failedPlace struct{ tasks.Place }

func (p failedPlace) sound() bool { return p.ID != "" && p.FailedAt > 0 }

func (s *Server) failedTaskRoutes() {
	route(s, Operator, huma.Operation{
		OperationID: "listFailedTasks", Method: http.MethodGet, Path: "/v1/failed-tasks",
		Summary: "Delayed tasks that failed again and again, the newest failure first",
	}, s.listFailedTasks)
	route(s, Operator, huma.Operation{
		OperationID: "retryFailedTask", Method: http.MethodPost, Path: "/v1/failed-tasks/{id}/retry",
		Summary: "Run a failed task now, and remove it where it succeeds", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.retryFailedTask)
	route(s, Operator, huma.Operation{
		OperationID: "deleteFailedTask", Method: http.MethodDelete, Path: "/v1/failed-tasks/{id}",
		Summary: "Remove a failed task for good", Errors: []int{http.StatusNotFound},
	}, s.deleteFailedTask)
}

func (s *Server) listFailedTasks(ctx context.Context, in *PageInput) (*pageOutput[failedTaskView], error) {
	return readPage(*in, func(after *failedPlace, limit int) ([]tasks.FailedTask, error) {
		if after == nil {
			return s.tasks.ListFailed(ctx, nil, limit)
		}
		return s.tasks.ListFailed(ctx, &after.Place, limit)
	}, func(f tasks.FailedTask) failedPlace { return failedPlace{f.Place()} },
		func(f tasks.FailedTask) failedTaskView { return failedTaskView(f) })
}

func (s *Server) retryFailedTask(ctx context.Context, in *failedTaskPath) (*retriedTaskOutput, error) {
	out, err := new(retriedTaskOutput), error(nil)
	out.Body.Outcome, err = s.tasks.Retry(ctx, in.ID)
	return out, err
}

func (s *Server) deleteFailedTask(ctx context.Context, in *failedTaskPath) (*struct{}, error) {
	return nil, s.tasks.Discard(ctx, in.ID)
}
