-- +goose NO TRANSACTION
-- +goose Up

-- Each of these cost every settlement an insert at a random place and answered nothing that another key doesn't: the lines of
-- orders find a cabinet's orders, and the primary key the movements of a cabinet and of a product. MySQL has no
-- DROP INDEX IF EXISTS.
SET @statement = (SELECT COALESCE(CONCAT('ALTER TABLE stock_movements ', GROUP_CONCAT('DROP INDEX ', i.name SEPARATOR ', ')), 'DO 0') FROM (
  SELECT DISTINCT index_name AS name FROM information_schema.statistics WHERE table_schema = DATABASE()
  AND table_name = 'stock_movements' AND index_name IN ('stock_movements_seq', 'stock_movements_newest')) i);
PREPARE step FROM @statement;
EXECUTE step;
DEALLOCATE PREPARE step;

SET @statement = (SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE orders DROP INDEX orders_device')
  FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'orders' AND index_name = 'orders_device');
PREPARE step FROM @statement;
EXECUTE step;
DEALLOCATE PREPARE step;

-- +goose Down
SET @statement = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE orders ADD INDEX orders_device (device_id, order_id)')
  FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'orders' AND index_name = 'orders_device');
PREPARE step FROM @statement;
EXECUTE step;
DEALLOCATE PREPARE step;

SET @statement = (SELECT IF(COUNT(*) > 0, 'DO 0', CONCAT('ALTER TABLE stock_movements ',
  'ADD INDEX stock_movements_seq (device_id, seq_epoch, seq), ',
  'ADD INDEX stock_movements_newest (device_id, created_at, product_id, version)'))
  FROM information_schema.statistics WHERE table_schema = DATABASE()
  AND table_name = 'stock_movements' AND index_name = 'stock_movements_seq');
PREPARE step FROM @statement;
EXECUTE step;
DEALLOCATE PREPARE step;
