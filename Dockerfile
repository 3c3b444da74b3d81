# docker build -t sotto .   and   docker run --rm -v "$PWD:/work" sotto fit /work/sotto.yaml
# The image holds the command, the certificates that TLS to a database needs, and nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -buildid=" -o /sotto ./cmd/sotto

FROM scratch
COPY --from=build /sotto /sotto
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Run it as the owner of the data: --user "$(id -u):$(id -g)". The ledger goes to the mounted directory.
ENV XDG_DATA_HOME=/work/.local/share
LABEL org.opencontainers.image.source=https://github.com/sottodp/sotto
USER 65532:65532
WORKDIR /work
ENTRYPOINT ["/sotto"]
