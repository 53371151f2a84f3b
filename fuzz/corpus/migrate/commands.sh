SIZE=Standard_NC6
az vm create -n a \
  --size "$SIZE" -l westeurope
az container create --gpu-count 1 --gpu-sku K80 # old
cat <<EOF | az deployment group create --parameters size=NC6
{{ x }}
EOF
