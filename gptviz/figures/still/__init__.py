"""Figures without a browser: what is drawn as plain marks, and these as an SVG, a PNG or a PDF.

canvas      the marks, in pixels from the top left: rectangles, lines, curves, discs, texts, pictures
svg         marks as SVG: text stays text, shapes stay shapes
raster      marks as a PNG or a PDF, by matplotlib
values      the arrays, axes and scales of a chart that was written for Plotly
charts      such a chart as marks
hover       what its parts say when they are pointed at, for frame.js
"""
