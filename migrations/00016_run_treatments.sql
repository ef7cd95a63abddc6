-- +goose Up

-- What lists of campaigns show of a run's sheet, which is large.
ALTER TABLE runs ADD COLUMN treatment_labels text[] NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN swept boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN runs.treatment_labels IS 'labels of the treatments, and after them of the mixes of treatments, in the order of the sheet';
COMMENT ON COLUMN runs.swept IS 'a sweep of the plan has set parameters of this run';

-- Fills the two columns of runs that are there already. A sheet that is not the
-- JSON that this version writes leaves them empty: it must not stop the migration.
-- +goose StatementBegin
DO $$
DECLARE
    r record;
    s json;
BEGIN
    FOR r IN SELECT id FROM runs LOOP
        BEGIN
            SELECT convert_from(sheet, 'UTF8')::json INTO s FROM runs WHERE id = r.id;
            UPDATE runs SET
                treatment_labels = ARRAY(
                    SELECT l.label FROM (
                        SELECT 1 AS part, t.n, t.x ->> 'label' AS label
                        FROM json_array_elements(CASE json_typeof(s -> 'treatments') WHEN 'array' THEN s -> 'treatments' ELSE '[]' END) WITH ORDINALITY AS t (x, n)
                        UNION ALL
                        SELECT 2, m.n, m.x ->> 'label'
                        FROM json_array_elements(CASE json_typeof(s -> 'mixes') WHEN 'array' THEN s -> 'mixes' ELSE '[]' END) WITH ORDINALITY AS m (x, n)
                    ) l WHERE l.label IS NOT NULL ORDER BY l.part, l.n),
                swept = CASE json_typeof(s #> '{cell,settings}') WHEN 'array' THEN json_array_length(s #> '{cell,settings}') > 0 ELSE false END
            WHERE id = r.id;
        EXCEPTION WHEN data_exception THEN
            RAISE NOTICE 'the sheet of run % cannot be read: lists of campaigns show no treatments of it', r.id;
        END;
    END LOOP;
END $$;
-- +goose StatementEnd

-- From now on every run is inserted with both.
ALTER TABLE runs ALTER COLUMN treatment_labels DROP DEFAULT;
ALTER TABLE runs ALTER COLUMN swept DROP DEFAULT;
