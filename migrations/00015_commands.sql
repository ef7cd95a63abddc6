-- +goose Up

-- A person's instruction to a run is a command, in the journal as in the database.
ALTER TABLE run_orders RENAME TO run_commands;
ALTER INDEX run_orders_run RENAME TO run_commands_run;
ALTER VIEW order_states RENAME TO command_states;
ALTER VIEW command_states RENAME COLUMN obeyed_at TO applied_at;
ALTER VIEW command_states RENAME COLUMN passed_over TO rejected;
ALTER VIEW run_overview RENAME COLUMN pause_ordered TO pause_requested;
