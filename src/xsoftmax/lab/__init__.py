"""What surrounds the engine: benchmarks, papers, reports, tracking, generated pages. Nothing else imports it."""
