# docker build -t graphsc . && docker run --rm -v "$PWD:/work" graphsc train mutag
# With --gpus all it uses the GPUs of the host: PyTorch comes with its own CUDA.
FROM python:3.12-slim

WORKDIR /src
COPY . .
RUN pip install --no-cache-dir '.[all]'

# Runs, data and results live in a folder of the host, and belong to its user.
RUN useradd --create-home graphsc
USER graphsc
WORKDIR /work
ENTRYPOINT ["graphsc"]
CMD ["--help"]
