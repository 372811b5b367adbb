-- question: What did people note, when, and about which engines?
-- parameter from: DateTime64(9, 'UTC') = -1d | Marks from this instant on.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Marks before this instant.
-- parameter service_instance_id: String = '' | Those that concern this engine instance: that name it, or none; '' is any.
-- parameter host: String = '' | Those that concern this host_name: that name it, or none; '' is any.
-- parameter package: String = '' | Those that concern this engine_package: that name it, or none; '' is any.
-- parameter of_one: Bool = false | '' is the name of one engine that has none: marks that name another do not concern it.
-- parameter limit: UInt64 = 1000 | At most so many, the latest first.
-- column annotation_id [] | The mark.
-- column at [time] | The instant that it marks.
-- column text [] | What was noted.
-- column host_name [] | The host that it is about; '' is every one.
-- column service_instance_id [] | The engine instance that it is about; '' is every one.
-- column engine_package [] | The package that it is about; '' is every one.
-- column author [] | Who noted it.
-- column made_at [time] | When it was noted, by the clock of the machine where it was.
-- table: at, annotation_id, text, host_name, service_instance_id, engine_package, author
-- example: tachograph query annotations --param from=-7d --param host=gpu-node-024
SELECT
    annotation_id, at, any(a.text) AS text, host_name, service_instance_id, engine_package,
    any(a.author) AS author, any(a.made_at) AS made_at
FROM annotations AS a
WHERE at >= {from:DateTime64(9, 'UTC')}
    AND at < {to:DateTime64(9, 'UTC')}
    AND (({service_instance_id:String} = '' AND NOT {of_one:Bool}) OR service_instance_id IN ('', {service_instance_id:String}))
    AND (({host:String} = '' AND NOT {of_one:Bool}) OR host_name IN ('', {host:String}))
    AND (({package:String} = '' AND NOT {of_one:Bool}) OR engine_package IN ('', {package:String}))
GROUP BY annotation_id, at, host_name, service_instance_id, engine_package
-- A row without a text takes back the mark that it is otherwise like.
HAVING countIf(a.text = '') = 0
ORDER BY at DESC, annotation_id
LIMIT {limit:UInt64}
