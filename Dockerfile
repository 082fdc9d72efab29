# The app with the bundled model. It needs no network: docker build -t gptviz . && docker run -p 8501:8501 gptviz
# For visitors' sake keep HOME (measured heads, classes): -v gptviz:/home/gptviz
FROM python:3.11-slim
WORKDIR /srv/gptviz

# a torch without CUDA spares gigabytes: --build-arg TORCH_INDEX= the address of PyTorch's CPU index
ARG TORCH_INDEX
COPY requirements.txt requirements-dev.txt ./
RUN python -m pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} $(grep -o '^torch==[0-9.]*' requirements.txt) \
 && python -m pip install --no-cache-dir -r requirements.txt $(grep -o '^psycopg[^ ]*' requirements-dev.txt) \
 && rm -rf "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/torch/include

COPY app.py ./
COPY pages pages
COPY .streamlit .streamlit
COPY gptviz gptviz
RUN python -m compileall -q gptviz pages && useradd --create-home --uid 1000 gptviz \
 && install -d -o gptviz -g gptviz /home/gptviz/.cache /home/gptviz/.cache/gptviz
USER gptviz
# with an address Streamlit does not ask the internet for one
ENV HOME=/home/gptviz GPTVIZ_LOG=1 STREAMLIT_SERVER_HEADLESS=true STREAMLIT_SERVER_ADDRESS=0.0.0.0 STREAMLIT_SERVER_PORT=8501
EXPOSE 8501
HEALTHCHECK --start-period=60s --timeout=10s CMD python -c "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['STREAMLIT_SERVER_PORT'] + '/healthz', timeout=9)"
CMD ["python", "-m", "gptviz", "app"]
