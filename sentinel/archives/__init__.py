"""Archives of runs, judged in parts by many processes or machines and put together afterwards."""
